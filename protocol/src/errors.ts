/**
 * The one table of errors. `text` says what happened, `hint` says what to do next. Adding a row is a minor change; a reason
 * never changes its meaning. No other module may define a reason.
 */
import { type Blame, error } from "./dsl.ts";

interface Numbers {
  /** The number on the wire. 101-103 are the numbers of the published reference client. */
  readonly code: number;
  readonly blame: Blame;
  readonly http: number;
  /** Exit status of the command line: 4 retryable, 3 not allowed, 2 wrong input, else 1. Exceptions: protocol/test/errors.test.ts. */
  readonly exit: number;
  readonly retryable?: boolean;
}
const row = (reason: string, { code, blame, http, exit, retryable = false }: Numbers, text: string, hint: string): void =>
  error(reason, { code, blame, http, exit, retryable, text, hint });

const UPDATE_OLDER_SIDE = "Update the older of the two programs. `gsv --version` and `gsv status` show both versions.";
const REPORT_PEER = "This is an error of the connected program. Update it, or report the error to its author.";
const RETRY = "Try again in a moment.";
const SEND_AGAIN = "Send the message again.";
const FALL_BACK =
  'Send the message again in a moment, or name a model to try next: `gsv config set model.fallbacks \'[{"provider":"PROVIDER","id":"MODEL"}]\'`.';

// Frames and handshake.
row("protocol.not_connected", { code: 101, blame: "caller", http: 400, exit: 2 }, "The first frame was not `connect`.", REPORT_PEER);
row(
  "protocol.version",
  { code: 102, blame: "caller", http: 400, exit: 2 },
  "The two sides have no protocol version in common; this gateway speaks version 1.",
  UPDATE_OLDER_SIDE,
);
row("protocol.bad_connect", { code: 103, blame: "caller", http: 400, exit: 2 }, "The `connect` request is not valid.", REPORT_PEER);
row(
  "protocol.too_large",
  { code: 413, blame: "caller", http: 413, exit: 2 },
  "The frame is too large.",
  "Send less at once. Send files as attachments.",
);
row("protocol.too_deep", { code: 414, blame: "caller", http: 400, exit: 2 }, "The frame is nested too deeply.", "Send a flatter value.");
row("protocol.invalid_json", { code: 415, blame: "caller", http: 400, exit: 2 }, "The frame is not valid JSON.", REPORT_PEER);
row(
  "protocol.invalid_frame",
  { code: 416, blame: "caller", http: 400, exit: 2 },
  "The frame is not a request, response or event.",
  REPORT_PEER,
);
row(
  "protocol.invalid_params",
  { code: 400, blame: "caller", http: 400, exit: 2 },
  "The parameters are not valid.",
  "Correct the parameters and try again.",
);
row(
  "protocol.unknown_method",
  { code: 417, blame: "caller", http: 404, exit: 2 },
  "The gateway does not know this method.",
  UPDATE_OLDER_SIDE,
);
row(
  "protocol.unsupported",
  { code: 418, blame: "caller", http: 400, exit: 2 },
  "The gateway does not accept this kind of frame.",
  REPORT_PEER,
);
row(
  "protocol.late",
  { code: 408, blame: "caller", http: 408, exit: 4, retryable: true },
  "The request did not arrive in time.",
  "Send it again.",
);
row(
  "protocol.already_connected",
  { code: 419, blame: "caller", http: 409, exit: 2 },
  "This socket is already connected.",
  "Open a new socket for a new `connect`.",
);
row(
  "method.not_served",
  { code: 501, blame: "platform", http: 501, exit: 4 },
  "This gateway knows the method but does not serve it.",
  "Update the gateway. `gsv status` shows its version.",
);

// Authentication and limits.
row(
  "auth.required",
  { code: 401, blame: "caller", http: 401, exit: 3 },
  "Token rejected.",
  "On the gateway's own machine, `gsv up` puts its token back. On another machine: `gsv invite client` on the gateway's machine, then `gsv join CODE` here. A token of `--token` or of the environment comes before the stored one.",
);
row(
  "auth.not_configured",
  { code: 503, blame: "platform", http: 503, exit: 3 },
  "No token is configured, so the gateway accepts no connection.",
  "Run `gsv up`, or set the secret BOOTSTRAP_TOKEN_HASH of the deployment: the sha256 of a token, in hex.",
);
row(
  "auth.forbidden",
  { code: 403, blame: "policy", http: 403, exit: 3 },
  "This token does not permit the request.",
  "Use a token that may do this. Make one with an admin token: `gsv token create --help`.",
);
row(
  "auth.origin",
  { code: 404, blame: "policy", http: 403, exit: 3 },
  "This browser origin is not allowed.",
  "Allow the origin: `gsv config set auth.allowedOrigins '[\"https://HOST\"]'`. This replaces the list.",
);
row(
  "auth.host",
  { code: 406, blame: "policy", http: 403, exit: 3 },
  "The gateway does not answer under this host name.",
  "Use localhost, or start the gateway with `gsv up --listen 0.0.0.0:8788 --behind-proxy HOST`.",
);
row(
  "auth.bound",
  { code: 405, blame: "policy", http: 403, exit: 3 },
  "This token is bound to another id.",
  "Connect with the id that the token is bound to, which `gsv token list` shows, or create another token.",
);
row(
  "auth.agent_command",
  { code: 407, blame: "policy", http: 403, exit: 6 },
  "This command runs inside an agent's command and has no authority.",
  "Ask the owner to run it in a terminal of their own.",
);
row(
  "limit.rate",
  { code: 429, blame: "caller", http: 429, exit: 4, retryable: true },
  "Too many requests.",
  "Wait a minute, then try again.",
);
row(
  "limit.jobs",
  { code: 433, blame: "caller", http: 429, exit: 4, retryable: true },
  "The job queue is full.",
  "Try again later. See the queue: `gsv job list --status queued`.",
);
row(
  "limit.sockets",
  { code: 430, blame: "platform", http: 503, exit: 4, retryable: true },
  "Too many connections are open.",
  "Close some connections, or try again in a minute.",
);

// Policy.
row(
  "policy.denied",
  { code: 505, blame: "policy", http: 403, exit: 3 },
  "The policy of the owner does not allow this tool call.",
  "Show the rules: `gsv config get toolApproval`. In a conversation, `/mode` shows and changes its mode.",
);
row(
  "policy.error",
  { code: 506, blame: "bug", http: 500, exit: 1 },
  "The policy could not decide about this tool call, so it was denied.",
  "Show the rules: `gsv config get toolApproval`. Remove them with `gsv config unset toolApproval.rules`, and report this.",
);

// Sessions and chat.
row(
  "session.not_found",
  { code: 440, blame: "caller", http: 404, exit: 1 },
  "There is no such conversation.",
  "List the conversations: `gsv session list`.",
);
row(
  "session.bad_key",
  { code: 441, blame: "caller", http: 400, exit: 2 },
  "This is not the key of a conversation.",
  "Use a name such as `notes`, or a key from `gsv session list`.",
);
row(
  "session.queue_full",
  { code: 442, blame: "policy", http: 429, exit: 4, retryable: true },
  "Too many messages are waiting in this conversation.",
  "Wait for the answer, or stop the run with `/stop`.",
);
row("session.busy", { code: 443, blame: "policy", http: 409, exit: 4, retryable: true }, "The conversation is being archived.", RETRY);
row(
  "session.running",
  { code: 431, blame: "caller", http: 409, exit: 1 },
  "The conversation has a run or waiting messages, so it was not deleted.",
  "Wait for the run to end, or stop it with the deletion: `gsv session delete KEY --stop`.",
);
row(
  "session.deleting",
  { code: 432, blame: "policy", http: 409, exit: 4, retryable: true },
  "The conversation is being deleted, so the message was not accepted.",
  "Send the message again in a moment: it then starts a new conversation.",
);
row(
  "session.snapshot_required",
  { code: 444, blame: "caller", http: 410, exit: 1 },
  "The requested events are too old to replay.",
  "Load the history instead.",
);
row(
  "session.archive_failed",
  { code: 445, blame: "platform", http: 502, exit: 1, retryable: true },
  "The transcript could not be archived, so nothing was removed.",
  RETRY,
);
row("chat.empty", { code: 446, blame: "caller", http: 400, exit: 2 }, "The message is empty.", "Write a message or attach a file.");
row(
  "chat.too_long",
  { code: 447, blame: "caller", http: 413, exit: 2 },
  "The message is too long.",
  "Put the text into a file and attach it: `gsv chat --attach FILE`.",
);
row(
  "chat.bad_directive",
  { code: 448, blame: "caller", http: 400, exit: 2 },
  "A directive in the message is not valid.",
  "Correct the directive; `/help` lists the commands.",
);

// Models.
row(
  "model.not_configured",
  { code: 450, blame: "caller", http: 400, exit: 1 },
  "No model key is set.",
  "List the providers with `gsv provider list`, then set a key: `gsv config set apiKeys.PROVIDER -`.",
);
row(
  "model.unknown",
  { code: 451, blame: "caller", http: 400, exit: 1 },
  "This model is not known.",
  "Write the model as provider/id. For a server of your own, set `model.baseUrl`.",
);
row(
  "model.auth",
  { code: 452, blame: "peer", http: 502, exit: 1 },
  "The model provider rejected the key.",
  "Set a valid key: `gsv config set apiKeys.PROVIDER -`.",
);
row("model.overloaded", { code: 453, blame: "peer", http: 503, exit: 4, retryable: true }, "The model is overloaded.", FALL_BACK);
row(
  "model.rate_limited",
  { code: 449, blame: "peer", http: 503, exit: 4, retryable: true },
  "The model provider's rate limit is reached.",
  FALL_BACK,
);
row(
  "model.rejected",
  { code: 454, blame: "peer", http: 502, exit: 1 },
  "The model provider rejected the request.",
  "Check the model settings: `gsv config get model`.",
);
row(
  "model.context_overflow",
  { code: 455, blame: "peer", http: 502, exit: 1 },
  "The conversation is too long for this model.",
  "Shorten it with `/compact`, or start a new one with `/new`.",
);
row("model.timeout", { code: 456, blame: "peer", http: 504, exit: 4, retryable: true }, "The model did not answer in time.", SEND_AGAIN);
row(
  "model.unreachable",
  { code: 457, blame: "peer", http: 502, exit: 4, retryable: true },
  "The model's server cannot be reached.",
  "Check the network and the setting `model.baseUrl`.",
);
row(
  "model.bad_answer",
  { code: 458, blame: "peer", http: 502, exit: 4, retryable: true },
  "The model's answer was incomplete or not valid.",
  SEND_AGAIN,
);
row(
  "model.refused",
  { code: 459, blame: "peer", http: 502, exit: 1 },
  "The model declined to answer.",
  "Rephrase the message, or use another model: `/model`.",
);
row(
  "budget.steps",
  { code: 460, blame: "policy", http: 429, exit: 1 },
  "The run reached its limit of steps.",
  'Say "continue" to go on, or raise the limit: `gsv config set limits.stepsPerRun N`.',
);
row(
  "budget.time",
  { code: 461, blame: "policy", http: 429, exit: 1 },
  "The run reached its time limit.",
  'Say "continue" to go on, or raise the limit: `gsv config set limits.runMs MILLISECONDS`.',
);
row(
  "budget.cost",
  { code: 462, blame: "policy", http: 429, exit: 1 },
  "The run reached its cost limit.",
  'Say "continue" to go on, or raise the limit: `gsv config set limits.runCostUsd USD`.',
);
row(
  "budget.loop",
  { code: 465, blame: "policy", http: 429, exit: 1 },
  "The model repeated the same call too often.",
  "Say what it should do instead, or use another model (`/model`).",
);
row(
  "budget.session",
  { code: 466, blame: "policy", http: 429, exit: 1 },
  "The conversation reached its limit for today.",
  "Raise the limit: `gsv config set limits.sessionDayCostUsd USD` or `gsv config set limits.sessionDayTokens N`.",
);
row(
  "budget.agent",
  { code: 469, blame: "policy", http: 429, exit: 1 },
  "The agent reached its limit for today.",
  "Raise the limit: `gsv config set limits.agentDayCostUsd USD` or `gsv config set limits.agentDayTokens N`.",
);
row(
  "budget.guest",
  { code: 467, blame: "policy", http: 429, exit: 1 },
  "The limit for guests is reached for today.",
  "Write again tomorrow.",
);
row(
  "budget.day",
  { code: 468, blame: "policy", http: 429, exit: 1 },
  "The limit of the day is reached.",
  "Raise the limit: `gsv config set limits.dayCostUsd USD` or `gsv config set limits.dayTokens N`. `gsv usage` shows what was used.",
);
row(
  "budget.month",
  { code: 479, blame: "policy", http: 429, exit: 1 },
  "The limit of the month is reached.",
  "Raise the limit: `gsv config set limits.monthCostUsd USD` or `gsv config set limits.monthTokens N`. `gsv usage --by day` shows what was used.",
);
row(
  "run.no_progress",
  { code: 463, blame: "platform", http: 500, exit: 1, retryable: true },
  "The run made no progress and was ended.",
  SEND_AGAIN,
);
row(
  "run.not_found",
  { code: 619, blame: "caller", http: 404, exit: 1 },
  "There is no such run.",
  "Show the last run: `gsv why`. Name another conversation with `--session KEY`.",
);
row("run.aborted", { code: 464, blame: "caller", http: 409, exit: 1 }, "The run was stopped.", "Send a message to start another run.");

// Jobs.
row(
  "cron.bad_schedule",
  { code: 640, blame: "caller", http: 400, exit: 2 },
  "The schedule can't be used.",
  "Name a time such as `tomorrow 9am`, an interval such as `2h30m`, or five fields such as `0 9 * * mon-fri`. Preview the times: `gsv cron preview --every 2h30m`.",
);
row(
  "cron.not_found",
  { code: 641, blame: "caller", http: 404, exit: 1 },
  "There is no job with this id.",
  "List the jobs: `gsv cron list`.",
);
row(
  "cron.exists",
  { code: 642, blame: "caller", http: 409, exit: 1 },
  "There is another job with this id.",
  "Choose another id, or change the job: `gsv cron edit ID`.",
);
row(
  "cron.too_many",
  { code: 643, blame: "policy", http: 409, exit: 1 },
  "The limit of jobs is reached.",
  "Remove one: `gsv cron list`, `gsv cron remove ID`.",
);
row(
  "cron.running",
  { code: 644, blame: "caller", http: 409, exit: 1 },
  "A run of this job is under way.",
  "Wait for its end: `gsv cron runs ID`.",
);

// Hooks.
row(
  "hook.refused",
  { code: 650, blame: "caller", http: 401, exit: 3 },
  "There is no such hook, or the request is not signed with its secret.",
  "The owner sees the hooks and what they refused with `gsv hook list`.",
);
row("hook.not_found", { code: 651, blame: "caller", http: 404, exit: 1 }, "There is no such hook.", "List the hooks: `gsv hook list`.");
row(
  "hook.exists",
  { code: 652, blame: "caller", http: 409, exit: 1 },
  "There is a hook with this name.",
  "Choose another name, or remove the hook first: `gsv hook remove NAME`.",
);
row(
  "hook.too_many",
  { code: 653, blame: "policy", http: 409, exit: 1 },
  "The limit of hooks is reached.",
  "Remove one: `gsv hook list`, `gsv hook remove NAME`.",
);
row(
  "hook.bad_secret",
  { code: 654, blame: "caller", http: 400, exit: 2 },
  "The secret can't be used.",
  "Paste the secret as the other service shows it, or leave it out and let the gateway make one.",
);
row(
  "hook.bad_template",
  { code: 655, blame: "caller", http: 400, exit: 2 },
  "The template or a condition can't be used.",
  "Name values as `{{body.issue.title}}`, `{{header.x-github-event}}`, `{{id}}` or `{{body}}`, and conditions as `body.action=opened`.",
);
row(
  "hook.bad_body",
  { code: 656, blame: "caller", http: 400, exit: 2 },
  "The body is not JSON.",
  "Let the other service send JSON (at GitHub: content type application/json).",
);
row(
  "hook.full",
  { code: 657, blame: "policy", http: 503, exit: 4, retryable: true },
  "Too many deliveries wait already.",
  "Send it again later. The owner sees what waits with `gsv hook list`.",
);
row(
  "hook.no_target",
  { code: 658, blame: "platform", http: 503, exit: 4, retryable: true },
  "The hook can't do its work now.",
  "The owner sees why with `gsv hook list`.",
);

// Approvals.
row(
  "approval.denied",
  { code: 610, blame: "policy", http: 403, exit: 3 },
  "The owner denied the call.",
  "Choose another way, or ask the owner what to do.",
);
row(
  "approval.expired",
  { code: 611, blame: "policy", http: 403, exit: 3 },
  "No one answered the question about the call in time, so it was denied.",
  "Send the message again, and answer the question with `gsv approval allow CODE`.",
);
row(
  "approval.not_found",
  { code: 614, blame: "caller", http: 404, exit: 1 },
  "No question has this code.",
  "List the questions that wait: `gsv approval list`.",
);
row(
  "approval.ambiguous",
  { code: 615, blame: "caller", http: 409, exit: 1 },
  "Two conversations have a question with this code.",
  "Name the conversation too: `gsv approval allow CODE --session KEY`.",
);
row(
  "approval.once_only",
  { code: 616, blame: "caller", http: 409, exit: 1 },
  "This call can be allowed once only.",
  "Allow it once: `gsv approval allow CODE`.",
);
row(
  "approval.grant_not_found",
  { code: 617, blame: "caller", http: 404, exit: 1 },
  "There is no grant with this id.",
  "List what you have allowed: `gsv approval grants`.",
);
row(
  "undo.nothing",
  { code: 618, blame: "caller", http: 404, exit: 1 },
  "There is no change of a file to undo: none is known by this name, or it is older than 7 days.",
  "Name a run, a call or an undo, or the conversation: `gsv undo --session KEY`. `gsv audit --action tool.call` lists calls.",
);
row(
  "approval.too_many",
  { code: 612, blame: "policy", http: 429, exit: 1 },
  "Too many calls needed an approval at once.",
  "Ask for the work in smaller parts.",
);
row(
  "approval.repeated",
  { code: 613, blame: "policy", http: 403, exit: 3 },
  "The same call was denied again and again.",
  "Tell the agent what to do instead.",
);
row(
  "gateway.stopped",
  { code: 620, blame: "policy", http: 409, exit: 4 },
  "GSV is stopped: nothing runs until its owner resumes it.",
  "Go on with `gsv resume`, or write /resume.",
);
row(
  "gateway.restored_copy",
  { code: 621, blame: "policy", http: 409, exit: 1 },
  "This is a restored copy: it was not resumed, because what it was copied from may still run.",
  "On the gateway's machine, with the GSV_HOME of the copy, run `gsv resume`.",
);

row(
  "gateway.exported",
  { code: 622, blame: "policy", http: 409, exit: 1 },
  "The home of this gateway was exported and may be live elsewhere, so nothing was resumed: two gateways would answer the same people and run the same jobs.",
  "If it was imported, go on there and keep this one stopped. If it was not: `gsv resume --exported`.",
);

// Tools and nodes.
row("tool.unknown", { code: 470, blame: "caller", http: 404, exit: 1 }, "There is no such tool.", "List the tools: `gsv tools list`.");
row(
  "tool.bad_args",
  { code: 471, blame: "caller", http: 400, exit: 1 },
  "The tool's arguments are not valid.",
  "Correct the arguments; `gsv tools list --json` shows each tool's schema.",
);
row(
  "tool.failed",
  { code: 472, blame: "peer", http: 502, exit: 1 },
  "The tool failed.",
  "Read the tool's message, correct the cause and call the tool again.",
);
row(
  "tool.timeout",
  { code: 473, blame: "peer", http: 504, exit: 1 },
  "The tool did not finish in time.",
  "Check what the call has changed, then repeat it with a longer timeout.",
);
row(
  "tool.cancelled",
  { code: 474, blame: "caller", http: 409, exit: 1 },
  "The tool call was cancelled.",
  "Call the tool again if you still need the result.",
);
row(
  "tool.outcome_unknown",
  { code: 475, blame: "peer", http: 502, exit: 1 },
  "The outcome of the tool call is unknown: it may have taken effect.",
  "Check its effect before you repeat it.",
);
row(
  "tool.io",
  { code: 476, blame: "peer", http: 502, exit: 1 },
  "The machine could not read or write.",
  "Check the disk space and the permissions on that machine.",
);
row(
  "tool.too_large",
  { code: 477, blame: "policy", http: 413, exit: 1 },
  "The tool's result is too large.",
  "Ask the tool for less at once.",
);
row(
  "tool.queue_full",
  { code: 478, blame: "policy", http: 429, exit: 4, retryable: true },
  "Too many calls are waiting on this machine.",
  "Wait for some calls to end, then try again.",
);
row(
  "node.offline",
  { code: 480, blame: "peer", http: 503, exit: 1, retryable: true },
  "The machine is not connected.",
  "Start the node on that machine: `gsv node`.",
);
row(
  "node.replaced",
  { code: 481, blame: "peer", http: 409, exit: 1, retryable: true },
  "A newer connection with the same id replaced the node.",
  "Stop the other node, or give one of them another id: `gsv node --id ID`.",
);
row("node.unknown", { code: 482, blame: "caller", http: 404, exit: 1 }, "There is no such node.", "List the machines: `gsv nodes list`.");
row(
  "node.online",
  { code: 483, blame: "caller", http: 409, exit: 1 },
  "The node is connected.",
  "Stop the node first. To remove it while it is connected: `gsv nodes forget NODE --force`.",
);
row(
  "node.bad_options",
  { code: 484, blame: "caller", http: 400, exit: 2 },
  "The options of the node are not valid.",
  "Correct the option that the message names. The README of @gsv/node lists them.",
);
row(
  "node.bad_tool",
  { code: 485, blame: "caller", http: 400, exit: 2 },
  "The tool cannot be offered.",
  "Correct the definition of the tool, and register it before the node connects.",
);
row(
  "node.cannot_start",
  { code: 486, blame: "platform", http: 503, exit: 1 },
  "The node cannot start on this machine.",
  "Do what the message says. The node's log is in its state folder.",
);
row("node.closed", { code: 487, blame: "caller", http: 409, exit: 1 }, "The node is closed.", "Make a new node to connect again.");

// Paths, files and processes.
row(
  "path.outside_workspace",
  { code: 490, blame: "policy", http: 403, exit: 1 },
  "The path leaves the workspace.",
  "Use a path inside the workspace, or start the node with `gsv node --allow-outside`.",
);
row(
  "path.not_found",
  { code: 491, blame: "caller", http: 404, exit: 1 },
  "There is no such file.",
  "Check the path; list the folder first.",
);
row("path.not_a_file", { code: 492, blame: "caller", http: 400, exit: 1 }, "This is not a regular file.", "Name a regular file.");
row(
  "path.invalid",
  { code: 493, blame: "caller", http: 400, exit: 1 },
  "This is not a valid path.",
  "Use a relative path with `/` between the names.",
);
row("file.binary", { code: 494, blame: "caller", http: 415, exit: 1 }, "The file is not text.", "Name a text file.");
row("file.too_large", { code: 495, blame: "policy", http: 413, exit: 1 }, "The file is too large.", "Use a smaller file, or split it.");
row(
  "file.exists",
  { code: 496, blame: "caller", http: 409, exit: 1 },
  "The file already exists.",
  "Choose another name, or delete the file first.",
);
row(
  "edit.no_match",
  { code: 497, blame: "caller", http: 409, exit: 1 },
  "The text to replace is not in the file.",
  "Read the file again and copy the text exactly.",
);
row(
  "edit.ambiguous",
  { code: 498, blame: "caller", http: 409, exit: 1 },
  "The text to replace occurs more than once in the file.",
  "Include more of the text around it.",
);
row(
  "process.unknown",
  { code: 499, blame: "caller", http: 404, exit: 1 },
  "There is no such process.",
  "List the background processes with the Process tool.",
);

// Configuration, tokens, workspace.
row(
  "config.unknown_path",
  { code: 510, blame: "caller", http: 400, exit: 2 },
  "There is no such setting.",
  "Show the settings: `gsv config get`.",
);
row(
  "config.invalid",
  { code: 511, blame: "caller", http: 400, exit: 2 },
  "The value is not valid for this setting.",
  "Show the current values for comparison: `gsv config get`.",
);
row(
  "config.too_large",
  { code: 512, blame: "caller", http: 413, exit: 2 },
  "The configuration would become too large.",
  "Remove settings that you do not need: `gsv config unset PATH`.",
);
row(
  "config.not_served",
  { code: 513, blame: "caller", http: 400, exit: 2 },
  "This version of GSV does not use this setting, so it was not stored.",
  "Show the settings that are in force: `gsv config get`.",
);
row(
  "config.changed",
  { code: 514, blame: "caller", http: 409, exit: 1 },
  "The configuration was changed since it was read, so nothing was stored.",
  "Read it again, then make your change: `gsv config edit`.",
);
row(
  "config.no_sealing_key",
  { code: 515, blame: "platform", http: 503, exit: 1 },
  "The gateway has no key to encrypt secrets with, so the secret was not stored.",
  "On your own machine: `gsv down`, then `gsv up`. On Cloudflare: `openssl rand -hex 32 | npx wrangler secret put SEALING_KEYS`.",
);
row("token.not_found", { code: 520, blame: "caller", http: 404, exit: 1 }, "There is no such token.", "List the tokens: `gsv token list`.");
row(
  "token.limit",
  { code: 521, blame: "policy", http: 429, exit: 1 },
  "There are too many tokens.",
  "Revoke tokens that you do not need: `gsv token revoke ID`.",
);
row(
  "invite.wrong",
  { code: 523, blame: "caller", http: 403, exit: 3 },
  "The gateway knows no such invitation.",
  "Make a new one on the gateway's machine: `gsv invite node` or `gsv invite client`.",
);
row(
  "invite.used",
  { code: 524, blame: "caller", http: 409, exit: 1 },
  "This invitation was used already, and it is valid once.",
  "Make a new one on the gateway's machine: `gsv invite node` or `gsv invite client`. If it was not you who used it, `gsv token list` shows the token to revoke.",
);
row(
  "invite.expired",
  { code: 525, blame: "caller", http: 410, exit: 1 },
  "This invitation was revoked or has expired: it is valid for 10 minutes.",
  "Make a new one on the gateway's machine: `gsv invite node` or `gsv invite client`.",
);
row(
  "invite.limit",
  { code: 526, blame: "policy", http: 429, exit: 4, retryable: true },
  "There are too many open invitations.",
  "Wait until one was used or has expired, at most 10 minutes.",
);
row(
  "invite.name_taken",
  { code: 527, blame: "caller", http: 409, exit: 1 },
  "Another machine has a token with this name.",
  "Join with another name: `gsv join CODE --id NAME`. If it is the same machine, invite it by its name: `gsv invite node --name NAME`.",
);
row(
  "invite.not_found",
  { code: 529, blame: "caller", http: 404, exit: 1 },
  "There is no open invitation with this id.",
  "List the open invitations: `gsv invite list`.",
);
row(
  "invite.bad_code",
  { code: 528, blame: "caller", http: 400, exit: 2 },
  "This is not a whole join code.",
  "Copy the whole line that the gateway's machine printed, and run it again.",
);
row(
  "token.last_admin",
  { code: 522, blame: "policy", http: 409, exit: 1 },
  "This is the last admin token.",
  "Create another admin token before you revoke this one: `gsv token create --scope admin`.",
);
row(
  "workspace.conflict",
  { code: 530, blame: "caller", http: 409, exit: 1, retryable: true },
  "The file changed in the meantime.",
  "Read the file again, then repeat the change.",
);
row(
  "memory.not_found",
  { code: 534, blame: "caller", http: 404, exit: 1 },
  "No memory with this id waits for you.",
  "List those that wait: `gsv memory review`.",
);
row(
  "memory.quarantine_full",
  { code: 535, blame: "policy", http: 507, exit: 1 },
  "Too many memories wait for the owner.",
  "Keep or drop some of them: `gsv memory review`.",
);
row(
  "memory.unknown",
  { code: 536, blame: "caller", http: 404, exit: 1 },
  "There is no memory with this id.",
  "List the memories: `gsv memory list`.",
);
row(
  "memory.too_large",
  { code: 537, blame: "caller", http: 413, exit: 2 },
  "The memory is too large.",
  "Write down one fact in fewer words.",
);
row(
  "memory.full",
  { code: 538, blame: "policy", http: 507, exit: 1 },
  "The agent's long-term memory is full.",
  "Forget some memories: `gsv memory list`, then `gsv memory forget ID`.",
);
row(
  "workspace.protected",
  { code: 531, blame: "policy", http: 403, exit: 3 },
  "This file is protected against the change.",
  "Make the change yourself: `gsv workspace edit PATH`.",
);

// Channels and storage.
row(
  "channel.unknown",
  { code: 540, blame: "caller", http: 404, exit: 1 },
  "There is no such channel.",
  "List the channels: `gsv channel list`.",
);
row(
  "pair.not_found",
  { code: 541, blame: "caller", http: 404, exit: 1 },
  "There is no pairing request with this id.",
  "List the pairing requests: `gsv pair list`.",
);
row(
  "channel.failed",
  { code: 542, blame: "platform", http: 502, exit: 4, retryable: true },
  "The channel did not answer correctly.",
  "Try again in a moment; `gsv channel status CHANNEL` shows its state.",
);
row(
  "storage.failed",
  { code: 550, blame: "platform", http: 502, exit: 1, retryable: true },
  "The storage did not answer correctly.",
  RETRY,
);

row(
  "storage.newer_version",
  { code: 551, blame: "platform", http: 503, exit: 1 },
  "A newer version of GSV wrote this state, so nothing was changed.",
  "Install the newer version and start it again.",
);
row(
  "storage.full",
  { code: 552, blame: "platform", http: 507, exit: 4, retryable: true },
  "The disk is full, so the gateway could not store this and nothing was changed.",
  "Free some space on the gateway's disk (`df -h` shows how full each disk is), then try again.",
);

// Skills, agents, search, media.
row(
  "skill.not_found",
  { code: 560, blame: "caller", http: 404, exit: 1 },
  "There is no such skill.",
  "List the skills: `gsv skills list`.",
);
row(
  "skill.invalid",
  { code: 561, blame: "caller", http: 400, exit: 2 },
  "The skill's files are not valid.",
  "Correct the files, then install the skill again: `gsv skills install FOLDER`.",
);
row(
  "skill.changed",
  { code: 562, blame: "caller", http: 409, exit: 1 },
  "The skill changed in the meantime.",
  "Review it again: `gsv skills show NAME`.",
);
row(
  "skill.exists",
  { code: 563, blame: "caller", http: 409, exit: 1 },
  "A skill with this name already exists.",
  "Replace it with `gsv skills install FOLDER --replace`, or choose another name.",
);
row(
  "skill.builtin",
  { code: 564, blame: "caller", http: 409, exit: 1 },
  "Built-in skills cannot be removed or replaced.",
  "Disable the skill instead: `gsv config set skills.entries.NAME.enabled false`.",
);
row(
  "skill.limit",
  { code: 565, blame: "policy", http: 429, exit: 1 },
  "There are too many skills.",
  "Remove skills that you do not need: `gsv skills remove NAME`.",
);
row(
  "skill.too_large",
  { code: 566, blame: "caller", http: 413, exit: 2 },
  "The skill is too large.",
  "Remove files that the agent does not need, or put large files into the workspace: `gsv workspace put FILE`.",
);
row(
  "skill.upload_lost",
  { code: 567, blame: "caller", http: 409, exit: 4, retryable: true },
  "The uploaded files of the skill are incomplete or expired.",
  "Install the skill again: `gsv skills install FOLDER`.",
);
row(
  "skill.too_many_uploads",
  { code: 568, blame: "policy", http: 429, exit: 4, retryable: true },
  "Too many skills are being uploaded.",
  "Wait until the others are installed, or for 10 minutes, then try again.",
);
row("agent.unknown", { code: 570, blame: "caller", http: 404, exit: 1 }, "There is no such agent.", "List the agents: `gsv agent list`.");
row(
  "agent.exists",
  { code: 571, blame: "caller", http: 409, exit: 1 },
  "An agent with this name already exists.",
  "Choose another name; `gsv agent list` shows those in use.",
);
row(
  "agent.limit",
  { code: 572, blame: "policy", http: 429, exit: 1 },
  "There are too many agents.",
  "Delete an agent that you do not need: `gsv agent delete ID`.",
);
row(
  "agent.kept",
  { code: 573, blame: "caller", http: 409, exit: 1 },
  "This agent cannot be deleted.",
  "Make another agent the default one first: `gsv config edit`.",
);
row(
  "agent.in_use",
  { code: 574, blame: "caller", http: 409, exit: 1 },
  "Routes or conversations name this agent, so it was not deleted.",
  "Show the routes with `gsv config get agents.bindings`, and the conversations with `gsv session list`.",
);
row(
  "agent.definition_invalid",
  { code: 575, blame: "caller", http: 422, exit: 1 },
  "The definition has mistakes, so it was not applied.",
  "Repair the named lines; `gsv agent validate FILE` checks again.",
);
row(
  "autonomy.boundary",
  { code: 576, blame: "policy", http: 403, exit: 3 },
  "The agent tried to use something that its definition does not allow, so the run was ended.",
  "Allow it in the list of tools with `gsv agent edit ID`, or ask another agent.",
);
row(
  "prompt.overridden",
  { code: 577, blame: "bug", http: 500, exit: 1 },
  "The prompt does not contain the agent's current definition, so it was not used.",
  "Apply the definition again: `gsv agent show ID --yaml | gsv agent edit ID`. If it fails again, run `gsv doctor` and report its output.",
);
row(
  "task.key_reused",
  { code: 578, blame: "caller", http: 409, exit: 1 },
  "The same Idempotency-Key was sent before with another task.",
  "Send a new key with a new task.",
);
row(
  "context.override",
  { code: 579, blame: "caller", http: 400, exit: 2 },
  "The task's data has a key of a higher layer of the prompt, so nothing was run.",
  "Rename the key: only the agent's definition may set this layer.",
);
row(
  "limit.events",
  { code: 434, blame: "caller", http: 429, exit: 4, retryable: true },
  "Too many events are waiting.",
  "Emit the event again when some have ended: `gsv events list --status waiting_approval`.",
);
row(
  "event.not_allowed",
  { code: 593, blame: "policy", http: 403, exit: 3 },
  "The agent's definition does not allow events of this topic.",
  "Allow the topic in the definition: `gsv agent edit ID`.",
);
row(
  "event.topic_unknown",
  { code: 594, blame: "caller", http: 404, exit: 1 },
  "There is no such topic.",
  "Use one of the topics that the definition of the agent lists.",
);
row(
  "event.invalid",
  { code: 595, blame: "caller", http: 400, exit: 2 },
  "The payload does not fit the topic.",
  "Correct the payload and emit the event again.",
);
row(
  "event.not_found",
  { code: 596, blame: "caller", http: 404, exit: 1 },
  "There is no such event.",
  "List the events with `gsv events list`. An event is deleted a month after its end.",
);
row(
  "event.wrong_state",
  { code: 597, blame: "caller", http: 409, exit: 1 },
  "The event is not in a state that allows this.",
  "Look at the event with `gsv events show ID`.",
);
row(
  "pack.not_configured",
  { code: 660, blame: "caller", http: 409, exit: 1 },
  "A setting of the pack is missing.",
  "Set it as the guide of packs says. Show the settings: `gsv config get packs`.",
);
row(
  "pack.unavailable",
  { code: 661, blame: "peer", http: 503, exit: 4, retryable: true },
  "The service of the pack does not answer.",
  "Try again in a minute.",
);
row(
  "pack.rejected",
  { code: 662, blame: "peer", http: 502, exit: 1 },
  "The service of the pack refused the request.",
  "Correct what the message names, then try again.",
);
row(
  "job.not_found",
  { code: 581, blame: "caller", http: 404, exit: 1 },
  "There is no such job.",
  "List the jobs with `gsv job list`. A job is deleted a week after its end.",
);
row(
  "archive.damaged",
  { code: 580, blame: "platform", http: 502, exit: 1 },
  "The transcript in the bucket is damaged.",
  "List the other transcripts: `gsv session history`.",
);
row(
  "search.bad_query",
  { code: 585, blame: "caller", http: 400, exit: 2 },
  "The search query has no words.",
  "Enter at least one word: `gsv search TEXT`.",
);
row("media.not_found", { code: 590, blame: "caller", http: 404, exit: 1 }, "There is no such media file.", "Upload the file again.");
row(
  "media.unsupported",
  { code: 591, blame: "caller", http: 415, exit: 2 },
  "This kind of file is not supported.",
  "Convert the file to an image, audio, video or document format.",
);
row(
  "transfer.unknown",
  { code: 700, blame: "caller", http: 404, exit: 1 },
  "There is no such transfer on this connection.",
  "Start another one: `gsv cp SOURCE DESTINATION`.",
);
row(
  "transfer.bad_endpoint",
  { code: 701, blame: "caller", http: 400, exit: 2 },
  "The source and the destination can't be used together.",
  "Write NODE:PATH for a machine and gsv:PATH for the workspace: `gsv cp laptop:report.pdf gsv:report.pdf`.",
);
row(
  "transfer.busy",
  { code: 702, blame: "caller", http: 429, exit: 4, retryable: true },
  "Too many transfers are running.",
  "Wait until one has ended, then try again.",
);
row(
  "transfer.unsupported",
  { code: 703, blame: "peer", http: 501, exit: 1 },
  "The node on that machine is too old for transfers.",
  "Update GSV on that machine, then start its node again.",
);
row(
  "transfer.source_changed",
  { code: 704, blame: "peer", http: 409, exit: 4, retryable: true },
  "The source file changed while it was copied, so nothing was stored.",
  "Copy it again when no program writes to it.",
);
row(
  "transfer.checksum",
  { code: 705, blame: "peer", http: 502, exit: 4, retryable: true },
  "The copy differs from the source, so it was removed.",
  "Copy it again. If this happens again, check the disks of both machines.",
);
row(
  "transfer.interrupted",
  { code: 706, blame: "peer", http: 504, exit: 4, retryable: true },
  "The copy made no progress for five minutes, so it was ended.",
  "Check that the machine is connected: `gsv nodes list`. Then copy the file again.",
);
row(
  "transfer.cancelled",
  { code: 707, blame: "caller", http: 409, exit: 1 },
  "The copy was cancelled.",
  "Start it again: `gsv cp SOURCE DESTINATION`.",
);
row(
  "transfer.failed",
  { code: 708, blame: "peer", http: 502, exit: 1 },
  "The machine could not copy the file.",
  "Read the node's log: `gsv node logs`.",
);
row(
  "transcription.failed",
  { code: 592, blame: "peer", http: 502, exit: 4, retryable: true },
  "The recording could not be transcribed.",
  "Check the settings: `gsv config get transcription`.",
);
row(
  "embeddings.unavailable",
  { code: 586, blame: "peer", http: 502, exit: 4, retryable: true },
  "The embedding service did not answer.",
  "Nothing needs to be done: it is asked again, and words and the built-in table find the memories until then.",
);
row(
  "embeddings.refused",
  { code: 587, blame: "peer", http: 502, exit: 1 },
  "The embedding service refused the request.",
  "Check the settings: `gsv config get memory.embeddings`.",
);
row(
  "embeddings.text_refused",
  { code: 588, blame: "peer", http: 502, exit: 1 },
  "The embedding service does not take this text.",
  "Its words and the built-in table find the memory. Write it in a shorter form to get a vector of the service.",
);
row(
  "embeddings.invalid_answer",
  { code: 589, blame: "peer", http: 502, exit: 4, retryable: true },
  "The embedding service sent an invalid answer.",
  "Check the model and its dimensions: `gsv config get memory.embeddings`.",
);
row(
  "internal",
  { code: 500, blame: "bug", http: 500, exit: 70, retryable: true },
  "GSV failed because of an internal error.",
  "Try again. If the error remains, run `gsv doctor`.",
);

// Moves of a home (gateway/spec/move.md).
row(
  "move.not_stopped",
  { code: 690, blame: "caller", http: 409, exit: 1 },
  "This gateway is not stopped, so its state could change while it is exported.",
  "Stop everything first: `gsv stop --all`. Do not resume this gateway after the import: both would answer.",
);
row(
  "move.changed",
  { code: 691, blame: "caller", http: 409, exit: 1 },
  "The state of this gateway has changed while it was exported.",
  "Leave it stopped, then run the same `gsv deploy export FILE` again.",
);
row(
  "move.not_fresh",
  { code: 692, blame: "caller", http: 409, exit: 1 },
  "This gateway has been used, so nothing was imported.",
  "Import into a new gateway, on which nothing but the settings was changed.",
);
row(
  "move.in_progress",
  { code: 693, blame: "policy", http: 409, exit: 1 },
  "A home is being imported into this gateway, and until its end nothing else works.",
  "Go on with `gsv deploy import FILE`, or give it up with `gsv deploy import --cancel`.",
);
row(
  "move.newer_state",
  { code: 694, blame: "caller", http: 409, exit: 1 },
  "The export was made by a newer version of GSV.",
  "Update this gateway, then run the import again.",
);
row(
  "move.older_state",
  { code: 695, blame: "caller", http: 409, exit: 1 },
  "The export was made by an older version of GSV.",
  "Update the gateway that it was made from, then export again.",
);
row(
  "move.none",
  { code: 696, blame: "caller", http: 409, exit: 1 },
  "This import has not begun.",
  "Begin it with `gsv deploy import FILE`.",
);
row(
  "move.damaged",
  { code: 697, blame: "peer", http: 422, exit: 1 },
  "The import differs from the export.",
  "Give the import up with `gsv deploy import --cancel`, then run it again. If it fails again, make a new export.",
);

row(
  "backup.not_here",
  { code: 698, blame: "caller", http: 400, exit: 2 },
  "Backups are scheduled only for a gateway that runs on this machine.",
  "Set the schedule on the gateway's machine. A gateway in a Cloudflare account is stopped with `gsv stop --all` and written to a file with `gsv deploy export FILE`.",
);

// The connection itself. Never sent by the gateway: the program that lost or never got its connection reports these.
row(
  "link.unreachable",
  { code: 600, blame: "peer", http: 503, exit: 4, retryable: true },
  "The gateway cannot be reached.",
  "Start it with `gsv up`, or set its address: `gsv local-config set url URL`.",
);
row("link.closed", { code: 601, blame: "peer", http: 503, exit: 4, retryable: true }, "The connection to the gateway is closed.", RETRY);
row(
  "link.timeout",
  { code: 602, blame: "peer", http: 504, exit: 4, retryable: true },
  "The gateway did not answer in time.",
  "Check the gateway with `gsv status`, then try again.",
);
row(
  "link.busy",
  { code: 603, blame: "caller", http: 429, exit: 4, retryable: true },
  "Too many calls are waiting for the gateway's answer.",
  "Wait for some calls to end, then try again.",
);
row(
  "link.outcome_unknown",
  { code: 604, blame: "peer", http: 502, exit: 1 },
  "The connection broke before the answer: the call may have taken effect.",
  "Check its effect before you repeat it.",
);
row(
  "link.replaced",
  { code: 605, blame: "caller", http: 409, exit: 1 },
  "Another connection with the same id replaced this one.",
  "Stop the other program, or give one of them another id.",
);
row(
  "link.bad_url",
  { code: 606, blame: "caller", http: 400, exit: 2 },
  "This is not the address of a gateway.",
  "Write the address as ws://host:port or https://host.",
);
row(
  "link.bad_request",
  { code: 607, blame: "caller", http: 400, exit: 2 },
  "The request cannot be written as a frame.",
  "Correct the parameters and try again.",
);
row(
  "link.wrong_certificate",
  { code: 609, blame: "peer", http: 403, exit: 3 },
  "The server at this address has another certificate than the gateway whose fingerprint is stored, so nothing was sent to it.",
  "Another computer may answer in its place. If the gateway has a new certificate, make an invitation on its machine with `gsv invite node` or `gsv invite client`, and join again.",
);
row("link.bad_answer", { code: 608, blame: "peer", http: 502, exit: 1 }, "The gateway's answer is not valid.", UPDATE_OLDER_SIDE);

// A cluster of gateways. Only the command line makes these.
row(
  "cluster.bad_address",
  { code: 720, blame: "caller", http: 400, exit: 2 },
  "This is not the address of a cluster's bucket.",
  "Write it as s3://BUCKET/PREFIX, with a bucket of yours and plain names.",
);
row(
  "cluster.bad_listen",
  { code: 721, blame: "caller", http: 400, exit: 2 },
  "This is not an address for the other machines of a cluster, whose connections are not encrypted.",
  "Give an address of this machine on a private network, with a port, such as 10.0.0.7:7000.",
);
row(
  "cluster.no_keys",
  { code: 722, blame: "caller", http: 400, exit: 2 },
  "The keys of the cluster's bucket are missing or not usable.",
  "Write cluster.env into the configuration folder, with the lines AWS_ACCESS_KEY_ID=... and AWS_SECRET_ACCESS_KEY=..., and if needed AWS_ENDPOINT_URL=https://... and AWS_REGION=..., and run `chmod 600` on it.",
);
row(
  "cluster.home_used",
  { code: 723, blame: "caller", http: 409, exit: 1 },
  "Only a fresh home can join a cluster.",
  "Set GSV_HOME to a new folder. To bring this home into the cluster, run `gsv stop --all` and `gsv deploy export FILE` here, and `gsv deploy import FILE` there.",
);
row(
  "cluster.unsupported",
  { code: 724, blame: "caller", http: 409, exit: 1 },
  "This is not possible with a cluster.",
  "Use a home that belongs to no cluster: set GSV_HOME to its folder.",
);
