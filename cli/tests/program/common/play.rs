//! Plays the gateway for a run of `gsv`: one connection after the other, request by request.

use std::thread;

use serde_json::Value;

use super::fake_gateway::{Connection, FakeGateway};
use super::{Home, Run};

/// What the test does with one connection.
pub type Play<'a> = Box<dyn FnOnce(&mut Connection) + 'a>;

/// Runs `gsv` with this on stdin.
pub fn fed(home: &Home, gateway: &FakeGateway, args: &[&str], input: &str, plays: Vec<Play<'_>>) -> Run {
    thread::scope(|scope| {
        let run = scope.spawn(|| home.gsv_with_stdin(args, input));
        for play in plays {
            let mut connection = gateway.accept();
            play(&mut connection);
        }
        run.join().unwrap()
    })
}

pub fn played_in(gateway: &FakeGateway, home: &Home, args: &[&str], play: impl FnOnce(&mut Connection)) -> Run {
    fed(home, gateway, args, "", vec![Box::new(play)])
}

/// Runs `gsv`, which connects as often as there are plays.
pub fn played_all(args: &[&str], plays: Vec<Play<'_>>) -> Run {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    fed(&home, &gateway, args, "", plays)
}

pub fn played(args: &[&str], play: impl FnOnce(&mut Connection)) -> Run {
    played_all(args, vec![Box::new(play)])
}

/// One request, checked, and its answer.
pub fn serve(connection: &mut Connection, method: &str, params: &Value, answer: &Value) {
    let request = connection.expect(method);
    assert_eq!(&request.params, params, "{method}");
    connection.answer(&request, answer);
}

/// A run of one request.
pub fn asked(args: &[&str], method: &str, params: &Value, answer: &Value) -> Run {
    played(args, |connection| serve(connection, method, params, answer))
}

/// A run of one request that the gateway refuses.
pub fn refused(args: &[&str], method: &str, code: u32, reason: &str, message: &str) -> Run {
    played(args, |connection| {
        let request = connection.expect(method);
        connection.error(&request, code, reason, message);
    })
}
