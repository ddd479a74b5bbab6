//! A conversation at the prompt. The line editor has the terminal all the time: answers and news are printed above the line that
//! is being typed. During an answer, commands act at once, Ctrl-C stops the run, and messages wait for its end.

use std::future::pending;
use std::path::PathBuf;

use gsv_link::Link;
use gsv_protocol::types::{ApprovalEntry, SessionKey};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use super::attach::Chosen;
use super::board::Board;
use super::conversation::Conversation;
use super::followed::News;
use super::glance::of_key;
use super::misread::SEND_IT;
use super::picked;
use super::prompt::{Prompt, Typed};
use super::running::{Answer, answered};
use super::said::{Outgoing, Queue, QueueAsk, Reader, Said};
use super::seen::Seen;
use super::status::Facts;
use super::turn::Approve;
use super::view::{View, now_answer};
use crate::clean::clean;
use crate::client::Account;
use crate::commands::stop_state::{explain, failure_at};
use crate::exit::{OrFail, Outcome};
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
    /// Show the model's thoughts.
    pub thoughts: bool,
    pub out: Output,
}

struct Talk<'a> {
    given: Given<'a>,
    /// Prints above the line that is being typed.
    out: Output,
    prompt: Prompt,
    /// The status line, and the answer to what it shows.
    board: &'static Board,
    facts: Answer<Facts>,
    link: Link,
    key: SessionKey,
    /// The output of a call that was asked for.
    found: Answer<Found>,
    view: View,
    reader: Reader,
    queue: Queue,
    /// Calls that wait for a word while no answer is under way, in the order in which they were shown.
    waiting: Vec<ApprovalEntry>,
    /// The message that the gateway has and that waits there, behind another one or a question.
    behind: Option<String>,
    /// From when on a word counts for the first of them. None: it does, and the person was told so.
    counts_at: Option<Instant>,
    interrupts: &'a mut Signal,
    /// SIGTERM: the person leaves.
    ended: Signal,
    /// The person was told once when a message that waits is sent.
    told_waiting: bool,
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
    let ended = signal(SignalKind::terminate()).or_fail("listen for signals", "Try again.")?;
    let prompt = Prompt::open(history, terminal)?;
    let out = prompt.output();
    let board = prompt.board();
    board.set_facts(of_key(&conversation.followed.session));
    let mut talk = Talk {
        view: View::above(out, board, given.thoughts),
        given,
        out,
        prompt,
        board,
        facts: None,
        link: conversation.link(),
        key: conversation.followed.key(),
        found: None,
        reader: Reader::default(),
        queue: Queue::default(),
        waiting: Vec::new(),
        behind: None,
        counts_at: None,
        interrupts,
        ended,
        told_waiting: false,
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
            let (found, next) = explain(&state, &conversation.url);
            out.warn(&format!("GSV is {found}. {next}"));
        }
        picked::list(&self.given.files, out);
        let waiting = conversation.follow().await;
        for news in conversation.since_left(&self.given.seen).await {
            self.tell(&news, &mut None, conversation).await;
        }
        conversation.note_seen(&self.given.seen);
        self.ask_again(waiting);
        self.board.note_stale();
        loop {
            self.look_again(conversation);
            self.prompt.ask()?;
            // The turn of a message that was sent already shows its result.
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
                Err(failure) => out.failure(&failure_at(&self.given.account.url, failure)),
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
                _ = self.ended.recv() => return Ok(None),
                () = at(self.counts_at) => {
                    self.counts_at = None;
                    now_answer(&self.waiting).inspect(|text| out.note(text));
                    continue;
                }
                told = looked_up(&mut self.facts, &mut self.found) => {
                    self.show_looked_up(told);
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
            self.look_again(conversation);
        }
    }

    fn show_looked_up(&self, told: LookedUp) {
        match told {
            LookedUp::Facts(facts) => self.board.set_facts(facts),
            LookedUp::Found(found) => self.show_found(found),
        }
    }

    /// Asks for the facts of the status line when they may have changed and nothing is asked already.
    fn look_again(&mut self, conversation: &Conversation) {
        if self.board.is_live() && self.facts.is_none() && self.board.take_stale() {
            self.facts = Some(Box::pin(conversation.glance(self.board.facts())));
        }
    }

    /// Does what a line asks for while no answer is under way. Gives the message to send, or nothing to leave.
    async fn typed(&mut self, line: &str, conversation: &Conversation) -> Option<Option<Outgoing>> {
        match self.reader.read(line, &self.waiting) {
            Said::Nothing => {}
            Said::Leave => return Some(None),
            Said::Attach(path) => picked::attach(&mut self.given.files, &path, self.out),
            Said::Unknown(question) => self.out.note(&question),
            Said::NoAnswer(problem) => {
                self.out.note(&problem);
                self.out.aside(SEND_IT);
            }
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
            Said::Tool(ask) => self.show_tool(ask),
            // The next message asks for them.
            Said::Thoughts(ask) => {
                let _ = self.show_thoughts(ask);
            }
        }
        None
    }
}

/// An answer to what the prompt has asked the gateway beside the conversation.
enum LookedUp {
    Facts(Facts),
    Found(Found),
}

/// Waits for the next of these answers. Where nothing is asked, waits forever.
async fn looked_up(facts: &mut Answer<Facts>, found: &mut Answer<Found>) -> LookedUp {
    tokio::select! {
        biased;
        facts = answered(facts) => LookedUp::Facts(facts),
        found = answered(found) => LookedUp::Found(found),
    }
}

/// Waits until then. Without a time, waits forever.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

use tool_output::Found;

#[path = "answering.rs"]
mod answering;
#[path = "thoughts_command.rs"]
mod thoughts_command;
#[path = "told.rs"]
mod told;
#[path = "tool_output.rs"]
mod tool_output;
#[path = "waiting_lines.rs"]
mod waiting_lines;
