//! What is generated from the kinds is committed as it is generated.
#![allow(clippy::unwrap_used, clippy::panic)]

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
    for folder in xtask::FOLDERS {
        let files = std::fs::read_dir(root.join(folder)).unwrap().count();
        let expected = generated.keys().filter(|path| path.starts_with(folder)).count();
        assert_eq!(files, expected, "{folder}: a file of no kind");
    }
}
