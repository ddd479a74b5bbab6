/** The handshake. */
import { enumOf, method, struct, t } from "./dsl.ts";
import { Capability, Mode } from "./ids.ts";
import { ToolDefinition } from "./tool.ts";

export const ClientInfo = struct("ClientInfo", "The program that connects. Its rights come from its token, never from these fields.", {
  id: t.string(128, { minLength: 1 }),
  version: t.string(64),
  platform: t.string(64),
  mode: Mode,
  channel: t.optional(t.string(64)),
  accountId: t.optional(t.string(128)),
});

export const SandboxProfile = enumOf(
  "SandboxProfile",
  "What commands on a machine may do. `off`: what the user of the node may do. `workspace+net`: as `workspace`, with listed hosts.",
  ["off", "workspace", "workspace+net", "strict"],
);
export const SandboxTier = enumOf("SandboxTier", "What enforces a profile.", ["bubblewrap", "landlock", "seatbelt"]);
export const NodeSandbox = struct("NodeSandbox", "The sandbox that a machine really has for its commands, as the node has tested it.", {
  profile: SandboxProfile,
  /** Absent without a sandbox. */
  tier: t.optional(SandboxTier),
  /** What a command could still do, in words. */
  gaps: t.optional(t.array(t.string(200), 32)),
  /** Why commands run without the sandbox that they would have by default. */
  missing: t.optional(t.string(500)),
  /**
   * Addresses, and `localhost`, that the owner of the machine has listed, each with a port where the list has one. A command may ask for no
   * other (rule SB17). Absent from nodes of earlier versions, and where no command can reach a single host.
   */
  addresses: t.optional(t.array(t.string(300), 100)),
});
export const NodeDesktop = struct("NodeDesktop", "Whether a machine can show notifications on its desktop.", {
  /** The program that shows them, such as `notify-send`. Absent: none. */
  program: t.optional(t.string(64)),
  /** Why it can't, as a sentence. */
  missing: t.optional(t.string(300)),
});
export const NodeRuntime = struct("NodeRuntime", "Capabilities of a machine, and those that each tool uses.", {
  hostCapabilities: t.array(Capability, 64),
  toolCapabilities: t.map(t.array(Capability, 64)),
  /** Absent from nodes of earlier versions, which have none. */
  sandbox: t.optional(NodeSandbox),
  /** Absent from nodes of earlier versions, which show none. */
  desktop: t.optional(NodeDesktop),
  /**
   * The folder in which commands and relative paths begin. What the owner has allowed in one folder holds in no other. Absent from nodes of
   * earlier versions, and of one whose folder has a longer name.
   */
  workspace: t.optional(t.string(1024)),
  /**
   * The names of the only folder whose files the tools for files use. Absent: they use every folder, or the node is of an earlier version or
   * its folder has a longer name.
   */
  fileRoots: t.optional(t.array(t.string(1024), 2)),
});

export const LedgerCallState = enumOf(
  "LedgerCallState",
  "Progress of a call on a node. `lost`: the call was started and its outcome is unknown.",
  ["accepted", "started", "finished", "lost"],
);
export const LedgerCall = struct("LedgerCall", "A call whose result the gateway has not confirmed.", {
  callId: t.string(128),
  state: LedgerCallState,
});
export const NodeLedger = struct(
  "NodeLedger",
  "The calls in a node's ledger when it connects. A node that sends it promises that a repeated callId never runs twice.",
  {
    calls: t.array(LedgerCall, 512),
  },
);

export const ServerInfo = struct("ServerInfo", "The gateway.", {
  version: t.string(64),
  connectionId: t.string(64),
  /** The owner's time zone (`userTimezone`), when it is set. For clients that show times. */
  timeZone: t.optional(t.string(64)),
});
export const Features = struct("Features", "Methods and events of this gateway.", {
  methods: t.array(t.string(64)),
  events: t.array(t.string(64)),
});

method("connect", {
  doc: "Authenticates a socket. It must be the first request, and is allowed once.",
  params: {
    minProtocol: t.int(0, 65535),
    maxProtocol: t.int(0, 65535),
    client: ClientInfo,
    tools: t.optional(t.array(ToolDefinition, 64)),
    nodeRuntime: t.optional(NodeRuntime),
    auth: t.optional(struct("ConnectAuth", "The caller's token.", { token: t.optional(t.string(512)) })),
    resume: t.optional(
      struct("ConnectResume", "Sessions to follow again after a reconnect, each after the last received event.", {
        sessions: t.array(
          struct("ResumePoint", "The last received event of one session.", { sessionKey: t.string(512), afterSeq: t.int() }),
          64,
        ),
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
