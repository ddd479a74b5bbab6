/** The handshake. */
import { enumOf, method, struct, t } from "./dsl.ts";
import { Capability, Mode } from "./ids.ts";
import { ToolDefinition } from "./tool.ts";

export const ClientInfo = struct("ClientInfo", "Who connects. What it may do follows from its token, never from this.", {
  id: t.string(128, { minLength: 1 }),
  version: t.string(64),
  platform: t.string(64),
  mode: Mode,
  channel: t.optional(t.string(64)),
  accountId: t.optional(t.string(128)),
});

export const NodeRuntime = struct("NodeRuntime", "What a machine can do, and which of it each tool uses.", {
  hostCapabilities: t.array(Capability, 64),
  toolCapabilities: t.map(t.array(Capability, 64)),
});

export const LedgerCallState = enumOf(
  "LedgerCallState",
  "How far a node got with a call. `lost`: it was started, and the node can't tell how it ended.",
  ["accepted", "started", "finished", "lost"],
);
export const LedgerCall = struct("LedgerCall", "A call that a node still answers for.", { callId: t.string(128), state: LedgerCallState });
export const NodeLedger = struct(
  "NodeLedger",
  "What a node remembers when it connects. Its presence promises that a repeated callId never runs twice.",
  {
    calls: t.array(LedgerCall, 512),
  },
);

export const ServerInfo = struct("ServerInfo", "The gateway.", { version: t.string(64), connectionId: t.string(64) });
export const Features = struct("Features", "What this gateway serves.", { methods: t.array(t.string(64)), events: t.array(t.string(64)) });

method("connect", {
  doc: "Must be the first request on a socket, and is allowed once.",
  params: {
    minProtocol: t.int(0, 65535),
    maxProtocol: t.int(0, 65535),
    client: ClientInfo,
    tools: t.optional(t.array(ToolDefinition, 64)),
    nodeRuntime: t.optional(NodeRuntime),
    auth: t.optional(struct("ConnectAuth", "The caller's token.", { token: t.optional(t.string(512)) })),
    resume: t.optional(
      struct("ConnectResume", "Sessions to follow again after a reconnect, each from the last event seen.", {
        sessions: t.array(struct("ResumePoint", "Where to go on in one session.", { sessionKey: t.string(512), afterSeq: t.int() }), 64),
      }),
    ),
    ledger: t.optional(NodeLedger),
    fingerprint: t.optional(t.string(64)),
  },
  result: {
    type: t.literal("hello-ok"),
    protocol: t.int(1, 65535),
    server: ServerInfo,
    features: Features,
    fingerprint: t.optional(t.string(64)),
    /** Absent on the reference gateway. */
    scopes: t.optional(t.array(t.string(32))),
    pingIntervalMs: t.optional(t.int(0, 3600000)),
  },
  callers: ["client", "node", "channel"],
  scope: "read",
  audit: "own",
  errors: [
    "protocol.version",
    "protocol.bad_connect",
    "auth.required",
    "auth.not_configured",
    "auth.forbidden",
    "auth.bound",
    "limit.sockets",
    "limit.rate",
  ],
});
