//! A conversation at the prompt. The line editor has the terminal all the time: answers and news are printed above the line that
//! is being typed. During an answer, commands act at once, Ctrl-C stops the run, and messages wait for its end.

use std::future::pending;
use std::path::PathBuf;

use gsv_protocol::types::{ApprovalAnswerKind, ApprovalEntry, Attachment};
use tokio::signal::unix::Signal;
use tokio::time::{Instant, sleep_until};

use super::attach::{Chosen, upload_all};
use super::complete::HELP_HERE;
use super::conversation::{Answer, Conversation, answered};
use super::decision::Decision;
use super::followed::News;
use super::picked;
use super::prompt::{Prompt, Typed};
use super::said::{MOST_QUEUED, Outgoing, Queue, QueueAsk, Reader, Said};
use super::seen::Seen;
use super::turn::{Approve, Input, Request};
use super::view::{View, now_answer};
use crate::clean::{clean, one_line};
use crate::client::Account;
use crate::commands::stop::stopped_words;
use crate::config::{Config, Key};
use crate::exit::{Failure, Outcome};
use crate::output::Output;

/// What a conversation at the prompt needs beside the connection.
pub struct Given<'a> {
    pub account: &'a Account,
    /// Files for the first message.
    pub files: Vec<Chosen>,
    pub verbose: bool,
    pub approve: Approve,
    /// What earlier chats of this conversation have shown.
    pub seen: Seen,
    /// A line that is typed during an answer is for the run under way, whatever the setting says.
    pub steers: bool,
    pub out: Output,
}

struct Talk<'a> {
    given: Given<'a>,
    /// Prints above the line that is being typed.
    out: Output,
    prompt: Prompt,
    view: View,
    reader: Reader,
    queue: Queue,
    /// Calls that wait for a word while no answer is under way, the one that was shown last first.
    waiting: Vec<ApprovalEntry>,
    /// The message that the gateway has and that waits there, behind another one or a question.
    behind: Option<String>,
    /// From when on a word counts for the first of them. None: it does, and the person was told so.
    counts_at: Option<Instant>,
    interrupts: &'a mut Signal,
}

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
}

#[derive(PartialEq, Eq)]
enum Goes {
    On,
    Away,
}

pub async fn talk(
    given: Given<'_>,
    conversation: &mut Conversation,
    history: PathBuf,
    interrupts: &mut Signal,
) -> Outcome {
    let terminal = given.out;
    let prompt = Prompt::open(history, terminal)?;
    let out = prompt.output();
    let mut talk = Talk {
        given,
        out,
        prompt,
        view: View::above(out),
        reader: Reader::default(),
        queue: Queue::default(),
        waiting: Vec::new(),
        behind: None,
        counts_at: None,
        interrupts,
    };
    let result = talk.run(conversation).await;
    conversation.note_seen(&talk.given.seen);
    talk.prompt.close().await;
    for text in talk.queue.texts() {
        terminal.note(&format!("not sent: {}", clean(text)));
    }
    result
}

impl Talk<'_> {
    async fn run(&mut self, conversation: &mut Conversation) -> Outcome {
        let out = self.out;
        let session = &conversation.followed.session;
        out.aside(&format!("{session} · /help shows commands, Ctrl-D leaves"));
        if let Some(state) = conversation.stopped().await {
            out.warn(&format!("GSV is {}", stopped_words(&state)));
        }
        picked::list(&self.given.files, out);
        let waiting = conversation.follow().await;
        for news in conversation.since_left(&self.given.seen).await {
            self.tell(&news, &mut None, conversation).await;
        }
        conversation.note_seen(&self.given.seen);
        self.ask_again(waiting);
        loop {
            self.prompt.ask()?;
            // What comes of a message that was sent already is shown by its own turn.
            let missed = if self.queue.all().next().is_some_and(|next| next.ids.is_some()) {
                None
            } else {
                self.catch_up(conversation).await
            };
            let next = if let Some(next) = self.queue.pop() {
                self.prompt.echo(&next.text);
                next
            } else if let Some(next) = self.listen(missed, conversation).await? {
                next
            } else {
                return Ok(());
            };
            match self.say(next, conversation).await {
                Ok(Goes::On) => {}
                Ok(Goes::Away) => return Ok(()),
                Err(failure) if conversation.followed.ended => return Err(failure),
                Err(failure) => out.failure(&failure),
            }
        }
    }

    /// Shows the news that arrived during an answer and belong to none.
    async fn catch_up(&mut self, conversation: &mut Conversation) -> Answer<Vec<News>> {
        let mut missed = None;
        for news in conversation.catch_up() {
            self.tell(&news, &mut missed, conversation).await;
        }
        missed
    }

    /// Waits for the next message or command, and shows the news meanwhile. None: the person leaves.
    async fn listen(
        &mut self,
        mut missed: Answer<Vec<News>>,
        conversation: &mut Conversation,
    ) -> Outcome<Option<Outgoing>> {
        let out = self.out;
        let mut asked_to_leave = false;
        loop {
            let news = tokio::select! {
                typed = self.prompt.typed() => {
                    match typed? {
                        Typed::Line(line) => {
                            asked_to_leave = false;
                            if let Some(next) = self.typed(&line, conversation).await {
                                return Ok(next);
                            }
                        }
                        // The line is given up, as in a shell.
                        Typed::Interrupted(line) if !line.is_empty() => asked_to_leave = false,
                        Typed::Interrupted(_) if !asked_to_leave => {
                            asked_to_leave = true;
                            out.aside("(Ctrl-C again or Ctrl-D leaves)");
                        }
                        _ => return Ok(None),
                    }
                    continue;
                }
                // Between two lines the terminal sends the signal.
                _ = self.interrupts.recv() => continue,
                () = at(self.counts_at) => {
                    self.counts_at = None;
                    now_answer(&self.waiting).inspect(|text| out.note(text));
                    continue;
                }
                news = conversation.next_news() => vec![news?],
                mut news = answered(&mut missed) => {
                    news.retain(|news| conversation.followed.is_new(news));
                    news
                }
            };
            for news in news {
                self.tell(&news, &mut missed, conversation).await;
            }
        }
    }

    /// Does what a line asks for while no answer is under way. Gives the message to send, or nothing to leave.
    async fn typed(&mut self, line: &str, conversation: &Conversation) -> Option<Option<Outgoing>> {
        match self.reader.read(line, !self.waiting.is_empty()) {
            Said::Nothing => {}
            Said::Leave => return Some(None),
            Said::Attach(path) => picked::attach(&mut self.given.files, &path, self.out),
            Said::Unknown(question) => self.out.note(&question),
            Said::NotSent => self.out.aside("not sent"),
            Said::Answer(decision) => self.answer(conversation, decision).await,
            Said::Decide(decision) => self.decide(conversation, line, decision).await,
            // Commands are answered at once; files wait for a message.
            Said::Command(text) => return Some(Some(Outgoing::new(text, Vec::new()))),
            Said::Queue(QueueAsk::Add(text)) | Said::Steer(text) | Said::Message(text) => {
                let files = std::mem::take(&mut self.given.files);
                return Some(Some(Outgoing::new(text, files)));
            }
            Said::Queue(ask) => self.change_queue(&ask),
        }
        None
    }

    /// Sends a message and shows its answer, while the person types.
    async fn say(&mut self, message: Outgoing, conversation: &mut Conversation) -> Outcome<Goes> {
        let session = conversation.followed.session.clone();
        let (uploaded, commands) = match self.upload(&session, &message.files).await {
            Ok(Some(done)) => done,
            Ok(None) => {
                self.queue.put_back(message);
                return Ok(Goes::Away);
            }
            Err(failure) => {
                // The files stay chosen, so the message can be sent again.
                self.given.files.splice(..0, message.files);
                return Err(failure);
            }
        };
        let is_help = message.text == "/help";
        let text = message.text.clone();
        let request = Request {
            message: message.text,
            files: uploaded,
            timeout: None,
            verbose: self.given.verbose,
            approve: self.given.approve,
            while_busy: None,
            mode: None,
        };
        let mut running = match message.ids {
            Some(ids) => conversation.start_as(ids, request, &mut self.view),
            None => conversation.start(request, &mut self.view),
        };
        running.waits(std::mem::take(&mut self.waiting));
        self.prompt.set_busy(true);
        for command in commands {
            let _ = running.command(command, &mut self.view);
        }
        let result = loop {
            self.behind = running.is_behind().then(|| text.clone());
            let during = tokio::select! {
                biased;
                _ = self.interrupts.recv() => During::Interrupt,
                typed = self.prompt.typed() => self.during(typed?, running.asks()),
                input = running.next() => {
                    let is_help = matches!(&input, Input::Commanded(text, Ok(_)) if text == "/help");
                    let end = running.handle(input, &mut self.view);
                    if is_help {
                        self.out.line(HELP_HERE);
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
                During::Interrupt => running.handle(Input::Interrupted, &mut self.view),
                During::Command(text) => running.command(text, &mut self.view),
                During::Answer(decision) => running.handle(Input::Decided(decision), &mut self.view),
                During::Decide(decision) => running.handle(Input::DecidedAbout(decision), &mut self.view),
                During::Steer(text) => running.steer(text, &mut self.view),
                During::Leave => {
                    for line in running.take_steering().into_iter().filter(|line| !line.accepted) {
                        self.queue.push(Outgoing::new(line.text, Vec::new()));
                    }
                    self.out.note("The run goes on.");
                    self.out.aside(&format!(
                        "its answer: `gsv session preview {session}` · to stop it: `gsv chat -s {session} /stop`"
                    ));
                    return Ok(Goes::Away);
                }
            };
            if let Some(result) = end {
                break result;
            }
        };
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
        if is_help && result.is_ok() {
            self.out.line(HELP_HERE);
        }
        result.map(|()| Goes::On)
    }

    /// Uploads the files of a message. Also gives the commands that were typed meanwhile; none when the person leaves.
    async fn upload(&mut self, session: &str, files: &[Chosen]) -> Outcome<Option<(Vec<Attachment>, Vec<String>)>> {
        let mut commands = Vec::new();
        let uploading = upload_all(self.given.account, session, files, self.out);
        let mut uploading = std::pin::pin!(uploading);
        loop {
            let during = tokio::select! {
                biased;
                uploaded = &mut uploading => return Ok(Some((uploaded?, commands))),
                _ = self.interrupts.recv() => During::Interrupt,
                typed = self.prompt.typed() => self.during(typed?, false),
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
                During::Nothing | During::Queued | During::Answer(_) => {}
            }
        }
    }

    /// Does what a line asks for during an answer.
    fn during(&mut self, typed: Typed, asks: bool) -> During {
        let line = match typed {
            Typed::Line(line) => line,
            Typed::Interrupted(line) => {
                self.prompt.keep(line);
                return During::Interrupt;
            }
            Typed::End | Typed::Broken(_) => return During::Leave,
        };
        match self.reader.read(&line, asks) {
            Said::Nothing => self.prompt.erase(&line),
            Said::Leave => return During::Leave,
            Said::Attach(path) => picked::attach(&mut self.given.files, &path, self.out),
            Said::Unknown(question) => self.out.note(&question),
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
                let files = std::mem::take(&mut self.given.files);
                self.queue.push(Outgoing::new(text, files));
                return During::Queued;
            }
            Said::Queue(ask) => self.change_queue(&ask),
        }
        During::Nothing
    }

    /// Whether a line is for the run under way. The setting is read when Enter is pressed, so that a change counts at once.
    fn steers(&self) -> bool {
        self.given.steers || Config::load().is_ok_and(|config| config.get(Key::ChatEnter) == Some("steer"))
    }

    fn for_the_run(&mut self, line: &str, text: String) -> During {
        self.prompt.erase(line);
        let shown = one_line(&text, self.out.size().0.saturating_sub(STEERING.len()));
        self.out.aside(&format!("{STEERING}{shown}"));
        During::Steer(text)
    }
}

/// Waits until then. Without a time, waits forever.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

#[path = "told.rs"]
mod told;
#[path = "waiting_lines.rs"]
mod waiting_lines;
