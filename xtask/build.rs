//! Hands the target triple on: the release binary lies in a folder of that name.

fn main() {
    #[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=ZENKAI_TARGET={target}");
}
