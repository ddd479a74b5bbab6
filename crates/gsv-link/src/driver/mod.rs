//! The tokio task that owns the socket: carries inputs to the machine, and its outputs to the socket, the callers and the
//! consumer of events. Runs on a current-thread runtime as well as on a multi-thread one. Decides nothing.

pub mod handles;
mod socket;

use std::collections::{HashMap, VecDeque};
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use gsv_protocol::Json;
use gsv_protocol::types::Mode;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::error::LinkError;
use crate::machine::{CallKey, Config, Conn, Input, Machine, Millis, Output};
use crate::net::dial::{self, Failure, Socket};
use crate::net::target::Target;
use crate::options::Options;
use handles::{Command, LinkEvent, Shared};
use socket::Open;

/// When this many frames wait for the socket, further calls wait.
const OUTGOING: usize = 64;

type Dialing = Pin<Box<dyn Future<Output = Result<Socket, Failure>> + Send>>;

/// The event that ended a wait.
enum Woken {
    Input(Input),
    /// The consumer of events took one.
    EventTaken,
    Dialed(Box<Result<Socket, Failure>>),
    Command(Option<Command>),
}

pub struct Driver {
    options: Options,
    target: Target,
    machine: Machine,
    commands: mpsc::Receiver<Command>,
    events: mpsc::Sender<LinkEvent>,
    /// Events that the consumer has not taken yet; while there are any, the socket is not read.
    backlog: VecDeque<LinkEvent>,
    answers: HashMap<CallKey, oneshot::Sender<Result<Json, LinkError>>>,
    /// Told of the first `hello-ok`, and dropped at the end.
    first: Option<oneshot::Sender<()>>,
    shared: Arc<Shared>,
    epoch: Instant,
    dialing: Option<(Conn, Dialing)>,
    open: Option<Open>,
    closing: Option<JoinHandle<()>>,
    ended: bool,
}

impl Driver {
    pub fn new(
        options: Options,
        target: Target,
        commands: mpsc::Receiver<Command>,
        events: mpsc::Sender<LinkEvent>,
        first: oneshot::Sender<()>,
        shared: Arc<Shared>,
    ) -> Self {
        let mut config = Config::new(target.shown.clone(), options.mode == Mode::Node, options.reconnect);
        config.handshake_timeout_ms = millis(options.connect_timeout).max(1);
        Self {
            options,
            target,
            machine: Machine::new(config),
            commands,
            events,
            backlog: VecDeque::new(),
            answers: HashMap::new(),
            first: Some(first),
            shared,
            epoch: Instant::now(),
            dialing: None,
            open: None,
            closing: None,
            ended: false,
        }
    }

    pub async fn run(mut self) {
        self.feed(Input::Start);
        while !self.ended {
            let input = self.next_input().await;
            if let Some(input) = input {
                self.feed(input);
            }
        }
        // The last events still reach a slow consumer.
        for event in std::mem::take(&mut self.backlog) {
            // An error means that the consumer is gone, and needs none.
            let _ = self.events.send(event).await;
        }
        if let Some(closing) = self.closing.take() {
            // A panic there does not matter any more: the socket is gone.
            let _ = closing.await;
        }
    }

    /// Waits for the next input. `None`: the machine needs no input.
    async fn next_input(&mut self) -> Option<Input> {
        let can_send = self.open.as_ref().is_none_or(|open| has_room(open.outgoing.len()));
        let slow = !self.backlog.is_empty();
        let tick = self
            .machine
            .next_tick()
            .map(|at| self.epoch + Duration::from_millis(at));
        let Self {
            commands,
            events,
            backlog,
            dialing,
            open,
            ..
        } = self;
        let (conn, reading, writing) = match open {
            Some(Open {
                conn,
                sink,
                stream,
                outgoing,
                dirty,
            }) => (Some(*conn), Some(stream), Some((sink, outgoing, dirty))),
            None => (None, None, None),
        };
        let woken = tokio::select! {
            permit = events.reserve(), if slow => {
                match permit {
                    Ok(permit) => if let Some(event) = backlog.pop_front() { permit.send(event) },
                    Err(_) => backlog.clear(),
                }
                Woken::EventTaken
            }
            () = async { match tick { Some(at) => tokio::time::sleep_until(at).await, None => pending().await } } => Woken::Input(Input::Tick),
            error = async { match writing { Some((sink, outgoing, dirty)) => Open::write(sink, outgoing, dirty).await, None => pending().await } } => {
                Woken::Input(Input::Closed { conn: conn?, code: None, reason: error.to_string() })
            }
            message = async { match reading { Some(stream) => stream.next().await, None => pending().await } }, if !slow => {
                Woken::Input(Self::read(conn?, message))
            }
            outcome = async { match dialing { Some((_, dial)) => dial.await, None => pending().await } } => Woken::Dialed(Box::new(outcome)),
            command = commands.recv(), if can_send => Woken::Command(command),
        };
        match woken {
            Woken::Input(input) => Some(input),
            Woken::EventTaken => self.backlog.is_empty().then_some(Input::Paused(false)),
            Woken::Dialed(outcome) => {
                let (conn, _) = self.dialing.take()?;
                Some(self.dialed(conn, *outcome))
            }
            Woken::Command(command) => Some(self.command(command)),
        }
    }

    fn read(conn: Conn, message: Option<Result<Message, tungstenite::Error>>) -> Input {
        match message {
            Some(Ok(Message::Text(text))) => Input::Text {
                conn,
                text: text.as_str().to_owned(),
            },
            Some(Ok(Message::Binary(frame))) => Input::Chunk { conn, frame },
            Some(Ok(Message::Close(frame))) => {
                let (code, reason) = frame.map_or((None, String::new()), |frame| {
                    (Some(frame.code.into()), frame.reason.as_str().to_owned())
                });
                Input::Closed { conn, code, reason }
            }
            Some(Ok(_)) => Input::Alive { conn },
            Some(Err(error)) => Input::Closed {
                conn,
                code: None,
                reason: error.to_string(),
            },
            None => Input::Closed {
                conn,
                code: None,
                reason: String::new(),
            },
        }
    }

    fn dialed(&mut self, conn: Conn, outcome: Result<Socket, Failure>) -> Input {
        match outcome {
            Ok(socket) => {
                let (sink, stream) = socket.split();
                self.open = Some(Open {
                    conn,
                    sink,
                    stream,
                    outgoing: VecDeque::new(),
                    dirty: false,
                });
                Input::Opened {
                    conn,
                    connect: Box::new(self.options.connect_params()),
                }
            }
            Err(Failure { cause, refusal }) => Input::DialFailed {
                conn,
                cause,
                refusal: refusal.map(|error| *error),
            },
        }
    }

    fn command(&mut self, command: Option<Command>) -> Input {
        match command {
            Some(Command::Call { call, answer }) => {
                self.answers.insert(call.key, answer);
                Input::Call(call)
            }
            Some(Command::Chunk(frame)) => Input::SendChunk(frame),
            Some(Command::Forget(key)) => {
                self.answers.remove(&key);
                Input::Forget { key }
            }
            Some(Command::Close) | None => Input::Shutdown {
                reason: "closed by this side".into(),
            },
        }
    }

    fn now(&self) -> Millis {
        millis(self.epoch.elapsed())
    }

    fn feed(&mut self, input: Input) {
        self.machine.handle(self.now(), fastrand::f64(), input);
        while let Some(output) = self.machine.poll() {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Dial { conn } => {
                self.open = None;
                let moved = self.options.address.as_ref().and_then(|present| present());
                if let Some(target) = moved.and_then(|url| Target::parse(&url).ok()) {
                    self.target = target;
                }
                let (target, token, within) = (
                    self.target.clone(),
                    self.options.token.clone(),
                    self.options.connect_timeout,
                );
                let dialing = async move { dial::open_socket(&target, token.as_deref(), within).await };
                self.dialing = Some((conn, Box::pin(dialing)));
            }
            Output::Send { conn, text } => {
                if let Some(open) = self.open.as_mut().filter(|open| open.conn == conn) {
                    open.outgoing.push_back(Message::text(text));
                }
            }
            Output::SendChunk { conn, frame } => {
                if let Some(open) = self.open.as_mut().filter(|open| open.conn == conn) {
                    open.outgoing.push_back(Message::Binary(frame));
                }
            }
            Output::Chunk { frame } => self.emit(LinkEvent::Chunk(frame)),
            Output::Close { conn, code, reason } => {
                self.dialing = None;
                if let Some(open) = self.open.take_if(|open| open.conn == conn) {
                    self.closing = Some(tokio::spawn(open.close(code, reason)));
                }
            }
            Output::Answer { key, outcome } => {
                if let Some(answer) = self.answers.remove(&key) {
                    // The caller may have gone meanwhile.
                    let _ = answer.send(outcome);
                }
            }
            Output::Up { hello } => {
                self.shared.set_hello((*hello).clone());
                if let Some(first) = self.first.take() {
                    // With `reconnect` the receiver is gone.
                    let _ = first.send(());
                }
                self.emit(LinkEvent::Connected(*hello));
            }
            Output::Down { reason, retry_in_ms } => {
                self.open = None;
                self.dialing = None;
                self.emit(LinkEvent::Disconnected {
                    reason,
                    retry_in: retry_in_ms.map(Duration::from_millis),
                });
            }
            Output::Event { event, seq } => self.emit(LinkEvent::Event { event, seq }),
            Output::Ignored { what } => self.emit(LinkEvent::Ignored { what }),
            Output::Stopped { error } => {
                self.open = None;
                self.ended = true;
                let why = error.clone().unwrap_or_else(|| LinkError::Closed {
                    reason: "closed by this side".into(),
                });
                let _ = self.shared.stopped.set(why);
                self.first = None;
                if let Some(error) = error {
                    self.emit(LinkEvent::Fatal(error));
                }
            }
        }
    }

    fn emit(&mut self, event: LinkEvent) {
        if self.backlog.is_empty() {
            match self.events.try_send(event) {
                // A consumer that is gone needs no events.
                Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
                Err(mpsc::error::TrySendError::Full(event)) => {
                    self.backlog.push_back(event);
                    self.machine.handle(self.now(), 0.5, Input::Paused(true));
                }
            }
        } else {
            self.backlog.push_back(event);
        }
    }
}

/// Whether another call may be taken while these frames wait for the socket.
fn has_room(outgoing: usize) -> bool {
    outgoing < OUTGOING
}

fn millis(duration: Duration) -> Millis {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::NewCall;

    /// A driver after `hello-ok`, whose consumer has room for one event: that of the connection.
    fn driver() -> (Driver, mpsc::Receiver<LinkEvent>) {
        let (mut driver, taken) = greeting(Mode::Client);
        let hello = r#"{"type":"res","id":"hello","ok":true,"payload":{"type":"hello-ok","protocol":1}}"#;
        text(&mut driver, hello);
        (driver, taken)
    }
    /// A driver that has sent `connect`.
    fn greeting(mode: Mode) -> (Driver, mpsc::Receiver<LinkEvent>) {
        let options = Options {
            reconnect: true,
            ..Options::new("ws://127.0.0.1:1", mode, "test")
        };
        let target = Target::parse(&options.url).unwrap();
        let (events, taken) = mpsc::channel(1);
        let (_, commands) = mpsc::channel(1);
        let (first, _) = oneshot::channel();
        let mut driver = Driver::new(options, target, commands, events, first, Arc::default());
        driver.feed(Input::Start);
        let connect = Box::new(driver.options.connect_params());
        driver.feed(Input::Opened { conn: Conn(1), connect });
        (driver, taken)
    }
    fn text(driver: &mut Driver, text: &str) {
        driver.feed(Input::Text {
            conn: Conn(1),
            text: text.into(),
        });
    }

    #[tokio::test]
    async fn p12_a_consumer_that_is_slow_gets_every_event_and_no_ping_is_due_meanwhile() {
        let (mut driver, mut taken) = driver();
        assert!(driver.machine.next_tick().is_some() && driver.backlog.is_empty());
        for number in 1..=3 {
            text(
                &mut driver,
                &format!(r#"{{"type":"evt","event":"chat","payload":{{}},"seq":{number}}}"#),
            );
            assert_eq!(driver.backlog.len(), number);
            assert_eq!(driver.machine.next_tick(), None);
        }
        assert!(matches!(taken.recv().await, Some(LinkEvent::Connected(_))));
    }

    #[tokio::test]
    async fn a_call_that_nobody_waits_for_leaves_no_trace() {
        let (mut driver, _taken) = driver();
        let (answer, _) = oneshot::channel();
        let call = NewCall {
            key: CallKey(7),
            request: Box::new(gsv_protocol::Request::NodesList(gsv_protocol::NoParams {})),
            resend: false,
            timeout_ms: 1_000,
        };
        let input = driver.command(Some(Command::Call { call, answer }));
        driver.feed(input);
        assert_eq!((driver.answers.len(), driver.machine.open_calls()), (1, 1));
        let input = driver.command(Some(Command::Forget(CallKey(7))));
        driver.feed(input);
        assert_eq!((driver.answers.len(), driver.machine.open_calls()), (0, 0));
    }

    #[tokio::test]
    async fn h6_a_node_waits_for_a_gateway_that_has_to_be_repaired_and_a_client_ends() {
        for (mode, ends) in [(Mode::Node, false), (Mode::Client, true)] {
            let (mut driver, _taken) = greeting(mode);
            let error = r#"{"code":503,"reason":"auth.not_configured","message":"no"}"#;
            text(
                &mut driver,
                &format!(r#"{{"type":"res","id":"hello","ok":false,"error":{error}}}"#),
            );
            assert_eq!(driver.ended, ends);
        }
    }

    #[test]
    fn calls_wait_while_64_frames_do() {
        assert_eq!((has_room(0), has_room(63), has_room(64)), (true, true, false));
    }
}
