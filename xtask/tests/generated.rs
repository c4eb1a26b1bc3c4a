//! What is generated from the kinds is committed as it is generated.

use std::path::Path;

#[test]
fn generated_files_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let generated = xtask::generated().unwrap();
    let stale: Vec<_> = generated
        .iter()
        .filter(|(path, text)| std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(text))
        .map(|(path, _)| path)
        .collect();
    assert!(stale.is_empty(), "run `cargo xtask generate`: {stale:?}");
    let crds = std::fs::read_dir(root.join("charts/konfig-konector/crds")).unwrap().count();
    assert_eq!(crds, generated.keys().filter(|path| path.contains("/crds/")).count(), "a CRD of no kind");
}
