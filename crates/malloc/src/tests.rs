#[allow(dead_code)]
#[path = "../../heap/src/tests/ground.rs"]
mod ground;
pub(crate) mod virtual_process;
