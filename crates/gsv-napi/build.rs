//! Link arguments of an addon, by platform.

fn main() {
    napi_build::setup();
}
