//! Hands calls to the JavaScript program and takes its answers. A call has a number of its own here, so that an answer is never
//! taken for another call. Knows no thread of JavaScript: that is [`Program`]'s.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gsv_tools::Progress;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// A call for the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    pub number: u32,
    pub call_id: String,
    pub tool: String,
    pub args: Value,
}

/// Why a call has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Cancelled,
    Late,
    /// The node has ended.
    Closed,
}

/// The JavaScript program. Its methods return at once.
pub trait Program: Send + Sync {
    /// False: the program is ending and takes no calls.
    fn start(&self, start: Start) -> bool;
    fn stop(&self, number: u32, stop: Stop);
}

/// How the tool's function ended: its value, or the message of what it threw.
pub type Answer = Result<Value, String>;

/// The calls that the program has.
#[derive(Default)]
pub struct Host(Mutex<Table>);

#[derive(Default)]
struct Table {
    program: Option<Arc<dyn Program>>,
    last: u32,
    running: HashMap<u32, Running>,
}

struct Running {
    answer: oneshot::Sender<Answer>,
    progress: Option<mpsc::Sender<Progress>>,
}

impl Host {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn attach(&self, program: Arc<dyn Program>) {
        self.table().program = Some(program);
    }

    /// No call reaches the program any more, and it is kept alive by nothing of the node.
    pub fn detach(&self) {
        let mut table = self.table();
        table.program = None;
        table.running.clear();
    }

    /// Starts a call. `None`: no program takes it, so nothing was run.
    pub fn begin(
        self: &Arc<Self>,
        call_id: &str,
        tool: &str,
        args: Value,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Option<Handed> {
        let (sender, answer) = oneshot::channel();
        let mut table = self.table();
        let program = table.program.clone()?;
        table.last = table.last.wrapping_add(1);
        let number = table.last;
        let running = Running {
            answer: sender,
            progress,
        };
        table.running.insert(number, running);
        drop(table);
        let handed = Handed {
            host: Arc::clone(self),
            number,
            answer,
            is_over: false,
        };
        let start = Start {
            number,
            call_id: call_id.to_owned(),
            tool: tool.to_owned(),
            args,
        };
        if program.start(start) {
            return Some(handed);
        }
        handed.forget();
        None
    }

    /// The program's answer. One for a call that is over is dropped.
    pub fn answered(&self, number: u32, answer: Answer) {
        if let Some(running) = self.table().running.remove(&number) {
            // A call that was given up has no receiver.
            let _ = running.answer.send(answer);
        }
    }

    /// Live output. Best effort, like that of every tool.
    pub fn progress(&self, number: u32, text: String) {
        let table = self.table();
        if let Some(progress) = table.running.get(&number).and_then(|running| running.progress.as_ref()) {
            let _ = progress.try_send(Progress {
                stream: "output",
                chunk: text,
            });
        }
    }

    fn stop(&self, number: u32, stop: Stop) {
        let program = self.table().program.clone();
        if let Some(program) = program {
            program.stop(number, stop);
        }
    }
}

/// A call that the program has. Dropping it tells the program to stop.
pub struct Handed {
    host: Arc<Host>,
    number: u32,
    answer: oneshot::Receiver<Answer>,
    is_over: bool,
}

impl Handed {
    /// `None`: the program is gone.
    pub async fn answer(&mut self) -> Option<Answer> {
        let answer = (&mut self.answer).await.ok();
        self.is_over = true;
        answer
    }

    pub fn stop(&self, stop: Stop) {
        self.host.stop(self.number, stop);
    }

    fn forget(mut self) {
        self.is_over = true;
        self.host.table().running.remove(&self.number);
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if !self.is_over {
            self.host.table().running.remove(&self.number);
            self.host.stop(self.number, Stop::Closed);
        }
    }
}
