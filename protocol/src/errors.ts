/** The one table of what can go wrong. Adding a row is a minor change; a reason never changes its meaning. */
import { type Blame, error } from "./dsl.ts";

const row = (reason: string, code: number, blame: Blame, http: number, exit: number, retryable: boolean, text: string): void =>
  error(reason, { code, blame, http, exit, retryable, text });

// Frames and handshake. 101-103 are the numbers of the published reference client.
row("protocol.not_connected", 101, "caller", 400, 2, false, "The first frame must be `connect`.");
row("protocol.version", 102, "caller", 400, 2, false, "This gateway speaks protocol version 1. Update the side that is older.");
row("protocol.bad_connect", 103, "caller", 400, 2, false, "The `connect` request is not valid.");
row("protocol.too_large", 413, "caller", 413, 2, false, "The frame is too large. Send less, or use a transfer.");
row("protocol.too_deep", 414, "caller", 400, 2, false, "The frame is nested too deeply.");
row("protocol.invalid_json", 415, "caller", 400, 2, false, "The frame is not valid JSON.");
row("protocol.invalid_frame", 416, "caller", 400, 2, false, "The frame is not a request, response or event.");
row("protocol.invalid_params", 400, "caller", 400, 2, false, "The parameters are not valid.");
row(
  "protocol.unknown_method",
  417,
  "caller",
  404,
  2,
  false,
  "There is no such method. Update the older side, or see the method list in hello-ok.",
);
row("protocol.unsupported", 418, "caller", 400, 2, false, "This kind of frame is not supported here.");
row("protocol.already_connected", 419, "caller", 409, 2, false, "This socket has said hello already. Open a new one.");
row("method.not_served", 501, "platform", 501, 4, false, "This gateway knows the method but does not serve it.");
// Who may.
row(
  "auth.required",
  401,
  "caller",
  401,
  3,
  false,
  "Missing or wrong token. Run `gsv local-config set token ...`, or make one with `gsv token create`.",
);
row(
  "auth.not_configured",
  503,
  "platform",
  503,
  3,
  false,
  "No token is set up, so everything but /health is closed. Run `gsv up`, or set the GSV_BOOTSTRAP_TOKEN secret.",
);
row("auth.forbidden", 403, "policy", 403, 3, false, "This token may not do that. Use one with a wider scope.");
row("auth.origin", 404, "policy", 403, 3, false, "This browser origin is not allowed. Add it to `auth.allowedOrigins`.");
row("auth.bound", 405, "policy", 403, 3, false, "This token is bound to another id.");
row("limit.rate", 429, "caller", 429, 4, true, "Too many requests. Wait a moment.");
row("limit.sockets", 430, "platform", 503, 4, true, "Too many connections. Close some, or wait.");
// Chat and sessions.
row("session.not_found", 440, "caller", 404, 1, false, "There is no such session.");
row("session.bad_key", 441, "caller", 400, 2, false, "This is not a session key.");
row("session.queue_full", 442, "policy", 429, 4, true, "Too many messages are waiting in this session. Wait for the answer, or `/stop`.");
row("session.busy", 443, "policy", 409, 4, true, "The session is busy with an archive. Try again in a moment.");
row("session.snapshot_required", 444, "caller", 410, 1, false, "The events asked for are too old to replay. Load the history instead.");
row("session.archive_failed", 445, "platform", 502, 1, true, "The transcript could not be archived, so nothing was removed. Try again.");
row("chat.empty", 446, "caller", 400, 2, false, "The message is empty.");
row("chat.too_long", 447, "caller", 413, 2, false, "The message is too long. Put it into a file and name the file.");
row("chat.bad_directive", 448, "caller", 400, 2, false, "The directive is not valid.");
// Models.
row(
  "model.not_configured",
  450,
  "caller",
  400,
  1,
  false,
  "No model key is set. Run `gsv config set apiKeys.<provider> <key>`, or use the built-in demo model: `gsv config set model.provider demo`.",
);
row(
  "model.unknown",
  451,
  "caller",
  400,
  1,
  false,
  "This model is not known. Name it as provider/id, and set `model.baseUrl` for your own server.",
);
row("model.auth", 452, "peer", 502, 1, false, "The model's provider refused the key. Check `apiKeys`.");
row(
  "model.overloaded",
  453,
  "peer",
  503,
  4,
  true,
  "The model is overloaded. Send the message again in a moment, or set `model.fallbacks`.",
);
row("model.rejected", 454, "peer", 502, 1, false, "The model's provider refused the request.");
row("model.context_overflow", 455, "peer", 502, 1, false, "The conversation is too long for this model. Use `/compact` or `/new`.");
row("model.timeout", 456, "peer", 504, 4, true, "The model did not answer in time. Send the message again.");
row("model.unreachable", 457, "peer", 502, 4, true, "The model's server can't be reached. Check `model.baseUrl` and the network.");
row("model.bad_answer", 458, "peer", 502, 4, true, "The model's answer was broken off or not valid.");
row("model.refused", 459, "peer", 502, 1, false, "The model declined to answer.");
row("budget.steps", 460, "policy", 429, 1, false, "The run used up its steps. Say `continue` to go on, or raise `limits.stepsPerRun`.");
row("budget.time", 461, "policy", 429, 1, false, "The run used up its time. Say `continue` to go on, or raise `limits.runMs`.");
row("budget.cost", 462, "policy", 429, 1, false, "The run used up its cost budget. Say `continue` to go on, or raise `limits.runCostUsd`.");
row("run.no_progress", 463, "platform", 500, 1, true, "The run made no progress and was ended. Send the message again.");
row("run.aborted", 464, "caller", 409, 1, false, "The run was stopped.");
// Tools and nodes.
row("tool.unknown", 470, "caller", 404, 1, false, "There is no such tool. See `gsv tools list`.");
row("tool.bad_args", 471, "caller", 400, 1, false, "The tool's arguments are not valid.");
row("tool.failed", 472, "peer", 502, 1, false, "The tool failed.");
row("tool.timeout", 473, "peer", 504, 1, false, "The tool did not finish in time.");
row("tool.cancelled", 474, "caller", 409, 1, false, "The tool call was cancelled.");
row("tool.outcome_unknown", 475, "peer", 502, 1, false, "It is not known whether the call took effect. Look before you repeat it.");
row("tool.io", 476, "peer", 502, 1, false, "The machine could not read or write.");
row("tool.too_large", 477, "policy", 413, 1, false, "The tool's result is too large.");
row("tool.queue_full", 478, "policy", 429, 4, true, "Too many calls wait on this machine. Wait for some to end.");
row("node.offline", 480, "peer", 503, 1, true, "The machine is not connected. Start `gsv node` on it.");
row("node.replaced", 481, "peer", 409, 1, true, "The node was replaced by a newer connection with the same id.");
row("node.unknown", 482, "caller", 404, 1, false, "There is no such node. See `gsv status`.");
row("node.online", 483, "caller", 409, 1, false, "The node is connected. Use force to forget it all the same.");
row("path.outside_workspace", 490, "policy", 403, 1, false, "The path leaves the workspace.");
row("path.not_found", 491, "caller", 404, 1, false, "There is no such file.");
row("path.not_a_file", 492, "caller", 400, 1, false, "This is not a regular file.");
row("path.invalid", 493, "caller", 400, 1, false, "This is not a valid path.");
row("file.binary", 494, "caller", 415, 1, false, "The file is binary.");
row("file.too_large", 495, "policy", 413, 1, false, "The file is too large.");
row("file.exists", 496, "caller", 409, 1, false, "There is such a file already.");
row("edit.no_match", 497, "caller", 409, 1, false, "The text to replace is not in the file.");
row("edit.ambiguous", 498, "caller", 409, 1, false, "The text to replace is in the file more than once.");
row("process.unknown", 499, "caller", 404, 1, false, "There is no such process.");
// Configuration, tokens, workspace.
row("config.unknown_path", 510, "caller", 400, 2, false, "There is no such setting.");
row("config.invalid", 511, "caller", 400, 2, false, "The value does not fit the setting.");
row("config.too_large", 512, "caller", 413, 2, false, "The configuration would become too large.");
row("token.not_found", 520, "caller", 404, 1, false, "There is no such token. See `gsv token list`.");
row("token.limit", 521, "policy", 429, 1, false, "There are too many tokens. Revoke some.");
row("token.last_admin", 522, "policy", 409, 1, false, "This is the last admin token; make another before you revoke it.");
row("workspace.conflict", 530, "caller", 409, 1, true, "The file was changed meanwhile. Read it again.");
row("workspace.protected", 531, "policy", 403, 3, false, "This file is protected and may not be changed this way.");
row("skill.not_found", 560, "caller", 404, 1, false, "There is no such skill. See `gsv skills list`.");
row("skill.invalid", 561, "caller", 400, 1, false, "The skill's files can't be used.");
row("skill.changed", 562, "caller", 409, 1, false, "The skill was changed meanwhile. Look at it again with `gsv skills show`.");
row("skill.exists", 563, "caller", 409, 1, false, "There is a skill of that name. Use --replace to put this one in its place.");
row(
  "skill.builtin",
  564,
  "caller",
  409,
  1,
  false,
  "Built-in skills can't be removed; switch it off: `gsv config set skills.entries.<name>.enabled false`.",
);
row("skill.limit", 565, "policy", 429, 1, false, "There are too many skills. Remove some.");
row("agent.unknown", 570, "caller", 404, 1, false, "There is no such agent. See `gsv agent list`.");
row("agent.exists", 571, "caller", 409, 1, false, "There is an agent of that name.");
row("agent.limit", 572, "policy", 429, 1, false, "There are too many agents.");
row("archive.damaged", 580, "platform", 502, 1, false, "The transcript in the bucket is damaged.");
row("search.bad_query", 585, "caller", 400, 2, false, "There is nothing to search for. Name at least one word.");
row("media.not_found", 590, "caller", 404, 1, false, "There is no such media file. Upload it again.");
row("media.unsupported", 591, "caller", 415, 1, false, "This kind of file can't be taken.");
row("transcription.failed", 592, "peer", 502, 1, true, "The recording could not be turned into text. Check `transcription`.");
row("channel.unknown", 540, "caller", 404, 1, false, "There is no such channel here.");
row("channel.failed", 542, "platform", 502, 1, true, "The channel did not answer as it should. Try again.");
row("pair.not_found", 541, "caller", 404, 1, false, "Nobody by that id is waiting to be paired.");
row("storage.failed", 550, "platform", 502, 1, true, "The storage did not answer as it should. Try again.");
row(
  "storage.newer_version",
  551,
  "platform",
  503,
  1,
  false,
  "A newer version of GSV has written this state, so nothing was changed. Install the newer version and start it again.",
);
row("internal", 500, "bug", 500, 70, true, "Something went wrong inside GSV. The log has the details.");
// The connection itself. Never sent by the gateway: the program that lost or never got its connection reports them.
row("link.unreachable", 600, "peer", 503, 4, true, "The gateway can't be reached. Start it with `gsv up`, or check its address.");
row("link.closed", 601, "peer", 503, 4, true, "The connection to the gateway is closed. Try again.");
row("link.timeout", 602, "peer", 504, 4, true, "The gateway did not answer in time. Check `gsv status`, then try again.");
row("link.busy", 603, "caller", 429, 4, true, "Too many calls wait for the gateway's answer. Wait for some to end.");
row("link.outcome_unknown", 604, "peer", 502, 1, false, "The connection broke before the answer. Check whether the call took effect.");
row("link.replaced", 605, "caller", 409, 1, false, "Another connection with the same id has replaced this one.");
row("link.bad_url", 606, "caller", 400, 2, false, "This is not the address of a gateway. Write it like ws://host:port.");
row("link.bad_request", 607, "caller", 400, 2, false, "The request can't be written as a frame.");
row("link.bad_answer", 608, "peer", 502, 1, false, "The gateway's answer can't be read. Update the older side.");
