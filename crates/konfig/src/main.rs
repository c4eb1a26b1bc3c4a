//! `konfig`: the operator, and the command line beside it.

mod cli;
mod log;
mod operator;
mod print;
mod serve;

use anyhow::Result;
use clap::Parser;

use cli::{Cli, Command};

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Operator(flags) => operator::run(flags),
        Command::Crds => print::crds(),
        Command::Rbac => print::rbac(),
    }
}
