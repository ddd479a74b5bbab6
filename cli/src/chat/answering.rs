//! One turn of the chat: sends the message with its files, shows the answer, and takes what the person types meanwhile: a command that acts
//! at once, words for the run, or a message that waits for its end.

use std::time::Duration;

use gsv_protocol::types::{ApprovalAnswerKind, ApprovalEntry, Attachment};

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Goes, Talk, looked_up};
use crate::chat::attach::{Chosen, upload_all};
use crate::chat::complete::{HELP_HERE, is_command};
use crate::chat::conversation::Conversation;
use crate::chat::decision::Decision;
use crate::chat::misread::SEND_IT;
use crate::chat::notify::{AFTER, Notify};
use crate::chat::picked;
use crate::chat::prompt::Typed;
use crate::chat::running::Running;
use crate::chat::said::{MOST_QUEUED, Outgoing, QueueAsk, Said};
use crate::chat::status::FRAME;
use crate::chat::turn::{Input, Request};
use crate::clean::one_line;
use crate::config::{Config, Key};
use crate::exit::{Failure, Outcome};
use crate::units::parse_duration;

/// During a run, the facts of the status line are asked for at most this often.
const LOOK_PAUSE: Duration = Duration::from_secs(2);
/// Before a message that was sent to the run under way.
const STEERING: &str = "for the run: ";

/// What a line asks for while an answer is under way.
enum During {
    Nothing,
    /// A message was typed, and waits.
    Queued,
    Interrupt,
    Leave,
    Command(String),
    Answer(ApprovalAnswerKind),
    Decide(Decision),
    /// A message for the run.
    Steer(String),
    /// Show the model's thoughts, or no longer.
    Thoughts(bool),
}

impl Talk<'_> {
    /// Sends a message and shows its answer, while the person types.
    pub(super) async fn say(&mut self, message: Outgoing, conversation: &mut Conversation) -> Outcome<Goes> {
        let session = conversation.followed.session.clone();
        self.board.begin();
        let began = Instant::now();
        let (uploaded, commands) = match self.upload(&session, &message.files).await {
            Ok(Some(done)) => done,
            Ok(None) => {
                self.queue.put_back(message);
                return Ok(Goes::Away);
            }
            Err(failure) => {
                self.board.end();
                // The files stay chosen, so the message can be sent again.
                self.given.files.splice(..0, message.files);
                return Err(failure);
            }
        };
        let is_help = message.text == "/help";
        let text = message.text.clone();
        let request = self.request(message.text, uploaded);
        conversation.followed.thinking = self.view.thoughts().is_on();
        let mut running = match message.ids {
            Some(ids) => conversation.start_as(ids, request, &mut self.view),
            None => conversation.start(request, &mut self.view),
        };
        running.waits(std::mem::take(&mut self.waiting));
        let mut asked = running.asks();
        let mut ticks = interval(FRAME);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.prompt.set_busy(!asked);
        let mut looked_at = Instant::now();
        for command in commands {
            let _ = running.command(command, &mut self.view);
        }
        let result = loop {
            self.behind = running.is_behind().then(|| text.clone());
            // Esc must not stop the run that asks: the question stays open.
            if running.asks() != asked {
                asked = running.asks();
                self.prompt.set_busy(!asked);
            }
            self.board.note_asking(asked);
            let during = tokio::select! {
                biased;
                _ = self.interrupts.recv() => During::Interrupt,
                _ = self.ended.recv() => During::Leave,
                typed = self.prompt.typed() => self.during(typed?, running.waiting()),
                told = looked_up(&mut self.facts, &mut self.found) => {
                    self.show_looked_up(told);
                    continue;
                }
                _ = ticks.tick() => {
                    self.tick(&running, &mut looked_at);
                    continue;
                }
                input = running.next() => {
                    let is_help = matches!(&input, Input::Commanded(text, Ok(_)) if text == "/help");
                    let end = running.handle(input, &mut self.view);
                    if is_help {
                        self.out.sentences(HELP_HERE);
                    }
                    match end {
                        Some(result) => break result,
                        None => continue,
                    }
                }
            };
            let end = match during {
                // The message that was typed takes the place of the run that waits.
                During::Queued if running.gives_way() => Some(Ok(())),
                During::Nothing | During::Queued => None,
                During::Interrupt => {
                    self.board.note_stopping();
                    running.handle(Input::Interrupted, &mut self.view)
                }
                During::Command(text) => running.command(text, &mut self.view),
                During::Answer(decision) => running.handle(Input::Decided(decision), &mut self.view),
                During::Decide(decision) => running.handle(Input::DecidedAbout(decision), &mut self.view),
                During::Steer(text) => running.steer(text, &mut self.view),
                During::Thoughts(on) => running.handle(Input::Thoughts(on), &mut self.view),
                During::Leave => {
                    self.leave(&mut running, &session);
                    return Ok(Goes::Away);
                }
            };
            if let Some(result) = end {
                break result;
            }
        };
        self.has_ended(running);
        // Not a command, and not what the person stopped.
        if result.is_ok() && !is_command(&text) {
            self.tell_the_end(began.elapsed());
        }
        if is_help && result.is_ok() {
            self.out.sentences(HELP_HERE);
        }
        result.map(|()| Goes::On)
    }

    fn request(&self, message: String, files: Vec<Attachment>) -> Request {
        Request {
            message,
            files,
            timeout: None,
            verbose: self.given.verbose,
            approve: self.given.approve,
            while_busy: None,
            mode: None,
        }
    }

    /// The person leaves, and the run goes on.
    fn leave(&mut self, running: &mut Running<'_>, session: &str) {
        for line in running.take_steering().into_iter().filter(|line| !line.accepted) {
            self.queue.push(Outgoing::new(line.text, Vec::new()));
        }
        match running.waiting() {
            [] => self.out.note("The run goes on."),
            waiting => {
                for entry in waiting {
                    let code = &entry.code;
                    self.out.note(&format!(
                        "The run waits for your answer to {code}: `gsv approval allow {code}` or `gsv approval deny {code}`."
                    ));
                }
            }
        }
        self.out.aside(&format!(
            "its answer: `gsv session preview {session}` · to stop it: `gsv chat -s {session} /stop`"
        ));
    }

    /// Keeps what is left of a run: messages that it was not shown, and questions that still wait.
    fn has_ended(&mut self, mut running: Running<'_>) {
        self.board.end();
        self.behind = None;
        let is_known = running.is_known();
        self.prompt.set_busy(false);
        for line in running.take_steering().into_iter().rev() {
            self.queue.put_back(Outgoing {
                ids: Some(line.ids),
                ..Outgoing::new(line.text, Vec::new())
            });
        }
        self.asks(running.into_waiting());
        if is_known {
            self.counts_at = None;
        }
    }

    /// Paints the next picture of the spinner, and asks for the facts of the status line from time to time.
    fn tick(&mut self, running: &Running<'_>, looked_at: &mut Instant) {
        self.board.tick();
        if self.facts.is_none() && looked_at.elapsed() >= LOOK_PAUSE && self.board.take_stale() {
            *looked_at = Instant::now();
            self.facts = Some(Box::pin(running.glance(self.board.facts())));
        }
    }

    /// Uploads the files of a message. Also gives the commands that were typed meanwhile; none when the person leaves.
    async fn upload(&mut self, session: &str, files: &[Chosen]) -> Outcome<Option<(Vec<Attachment>, Vec<String>)>> {
        let mut commands = Vec::new();
        let uploading = upload_all(self.given.account, session, files, self.out);
        let mut uploading = std::pin::pin!(uploading);
        let mut ticks = interval(FRAME);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let during = tokio::select! {
                biased;
                uploaded = &mut uploading => return Ok(Some((uploaded?, commands))),
                _ = self.interrupts.recv() => During::Interrupt,
                _ = self.ended.recv() => During::Leave,
                typed = self.prompt.typed() => self.during(typed?, &[]),
                _ = ticks.tick() => {
                    self.board.tick();
                    continue;
                }
            };
            match during {
                During::Interrupt => return Err(Failure::interrupted()),
                During::Command(command) => commands.push(command),
                During::Leave => return Ok(None),
                During::Steer(text) => self.queue.push(Outgoing::new(text, Vec::new())),
                // No answer is under way yet: the same line works a moment later.
                During::Decide(decision) => self.out.note(&format!(
                    "Files are being sent. Answer {} when they are there.",
                    decision.code
                )),
                // The message will ask for the thoughts.
                During::Nothing | During::Queued | During::Answer(_) | During::Thoughts(_) => {}
            }
        }
    }

    /// Does what a line asks for during an answer.
    fn during(&mut self, typed: Typed, waiting: &[ApprovalEntry]) -> During {
        let line = match typed {
            Typed::Line(line) => line,
            Typed::Interrupted(line) => {
                self.prompt.keep(line);
                return During::Interrupt;
            }
            Typed::End | Typed::Broken(_) => return During::Leave,
        };
        match self.reader.read(&line, waiting) {
            Said::Nothing => self.prompt.erase(&line),
            Said::Leave => return During::Leave,
            Said::Attach(path) => picked::attach(&mut self.given.files, &path, self.out),
            Said::Unknown(question) => self.out.note(&question),
            Said::NoAnswer(problem) => {
                self.out.note(&problem);
                self.out.aside(SEND_IT);
            }
            Said::NotSent => self.out.aside("not sent"),
            Said::Answer(decision) => return During::Answer(decision),
            Said::Decide(decision) => return During::Decide(decision),
            Said::Command(text) => return During::Command(text),
            Said::Steer(text) => return self.for_the_run(&line, text),
            Said::Message(text) if self.given.files.is_empty() && self.steers() => {
                return self.for_the_run(&line, text);
            }
            Said::Queue(QueueAsk::Add(_)) | Said::Message(_) if self.queue.is_full() => {
                self.out.note(&format!(
                    "{MOST_QUEUED} messages wait already. Send this one when one of them is answered."
                ));
                self.prompt.keep(line);
            }
            Said::Queue(QueueAsk::Add(text)) | Said::Message(text) => {
                self.prompt.erase(&line);
                let shown = one_line(&text, self.out.size().0.saturating_sub("queued: ".len()));
                self.out.aside(&format!("queued: {shown}"));
                if !std::mem::replace(&mut self.told_waiting, true) {
                    self.out
                        .aside("(sent when the answer has ended, by this chat only; `/queue` changes it)");
                }
                let files = std::mem::take(&mut self.given.files);
                self.queue.push(Outgoing::new(text, files));
                return During::Queued;
            }
            Said::Queue(ask) => self.change_queue(&ask),
            Said::Tool(ask) => self.show_tool(ask),
            Said::Thoughts(ask) => {
                if let Some(on) = self.show_thoughts(ask) {
                    return During::Thoughts(on);
                }
            }
        }
        During::Nothing
    }

    /// Whether a line is for the run under way. The setting is read when Enter is pressed, so that a change counts at once.
    fn steers(&self) -> bool {
        self.given.steers || Config::load().is_ok_and(|config| config.get(Key::ChatEnter) == Some("steer"))
    }

    /// The settings are read when the answer ends, so that a change counts at once.
    fn tell_the_end(&self, took: Duration) {
        let Ok(config) = Config::load() else { return };
        let after = config
            .get(Key::ChatNotifyAfter)
            .and_then(|after| parse_duration(after).ok());
        let sign = Notify::read(config.get(Key::ChatNotify)).sign(took, after.unwrap_or(AFTER));
        if let Some(sign) = sign {
            self.prompt.sign(sign);
        }
    }

    fn for_the_run(&mut self, line: &str, text: String) -> During {
        self.prompt.erase(line);
        let shown = one_line(&text, self.out.size().0.saturating_sub(STEERING.len()));
        self.out.aside(&format!("{STEERING}{shown}"));
        During::Steer(text)
    }
}
