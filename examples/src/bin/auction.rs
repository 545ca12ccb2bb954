//! `auction`: the whole program for one circuit. Try `cargo run --release -p hekaton-examples --bin
//! auction -- --help`.

use hekaton_app::App;

fn main() -> std::process::ExitCode {
    App::new("auction").circuit::<hekaton_examples::auction::Auction>().run()
}
