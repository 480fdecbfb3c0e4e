//! Where is the source of this crate? `busbound` compiles it a second time, into the library that it injects. It gets
//! the path from `DEP_BUSBOUND_APPLY_SOURCE`, both from a registry and from the workspace.

fn main() -> Result<(), std::env::VarError> {
    println!("cargo::metadata=source={}/src", std::env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
