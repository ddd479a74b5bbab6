/** The configuration. `GsvConfig` has every setting; CONFIG_DEFAULTS has the defaults. */
import { enumOf, method, struct, t } from "./dsl.ts";
import { AgentId, ThinkLevel } from "./ids.ts";
import { ModelRef } from "./chat.ts";
import { PolicyMode } from "./policy.ts";
import { ResetMode } from "./session.ts";

const o = t.optional;
export const ModelWire = enumOf("ModelWire", "Which wire format a custom model server speaks.", [
  "anthropic-messages",
  "openai-completions",
  "openai-responses",
  "azure-openai-responses",
  "google-generative-ai",
  "google-vertex",
  "mistral-conversations",
  "bedrock-converse-stream",
]);
export const ModelPrice = struct("ModelPrice", "US dollars for a million tokens.", {
  input: t.number(0),
  output: t.number(0),
  cacheRead: o(t.number(0)),
  cacheWrite: o(t.number(0)),
});
const url = t.string(2048, { pattern: "^https?://" });
export const ModelConfig = struct("ModelConfig", "The model. `demo` as provider needs no key.", {
  provider: o(t.string(64, { minLength: 1 })),
  id: o(t.string(256, { minLength: 1 })),
  baseUrl: o(url),
  wire: o(ModelWire),
  /** Whether the model accepts images. Absent: decided by the table of known models. */
  images: o(t.bool()),
  contextWindow: o(t.int(1024, 100000000)),
  maxTokens: o(t.int(1, 10000000)),
  price: o(ModelPrice),
  thinkLevel: o(ThinkLevel),
  fallbacks: o(t.array(ModelRef, 8)),
  /** Models by importance, for agents whose definition names a tier. An absent one is the configured model. */
  tiers: o(struct("ModelTiers", "Models by importance.", { critical: o(ModelRef), main: o(ModelRef), sub: o(ModelRef) })),
  headers: o(t.map(t.string(4096))),
});
export const ProviderConfig = struct("ProviderConfig", "Your own model server, usable in `model.fallbacks`, `/model` and agents.", {
  baseUrl: url,
  wire: ModelWire,
  /** Whether the model accepts images. Absent: decided by the table of known models. */
  images: o(t.bool()),
  contextWindow: o(t.int(1024, 100000000)),
  maxTokens: o(t.int(1, 10000000)),
  price: o(ModelPrice),
});
/** A name that becomes a part of a server's address. */
const place = t.string(128, { pattern: "^[A-Za-z0-9][A-Za-z0-9_-]*$" });
export const CloudConfig = struct("CloudConfig", "Where your models are at a cloud provider. Its key is in `apiKeys`.", {
  /** For the provider cloudflare-workers-ai, where no Workers AI binding is, and for cloudflare-ai-gateway. */
  cloudflareAccountId: o(place),
  /** For the provider cloudflare-ai-gateway: the gateway's name. */
  cloudflareGatewayId: o(place),
  /** For the provider amazon-bedrock, such as eu-central-1. */
  awsRegion: o(place),
  /** For the provider azure-openai-responses: the name of the resource. */
  azureResource: o(place),
  /** For the provider google-vertex. Absent: the project of the service account. */
  vertexProject: o(place),
  /** For the provider google-vertex, such as europe-west4. Absent: global. */
  vertexLocation: o(place),
});
export const TimeoutsConfig = struct("TimeoutsConfig", "Time limits.", {
  llmMs: o(t.int(1000, 3600000)),
  toolMs: o(t.int(1000, 86400000)),
});
const usd = o(t.number(0, 1000000));
const tokens = o(t.int(0, 1000000000000));
export const LimitsConfig = struct(
  "LimitsConfig",
  "Limits of effort. `...CostUsd` counts the calls of models with a known price, `...Tokens` those of all others. Days and months are those of `userTimezone`. A limit that is absent and has no default does not exist.",
  {
    stepsPerRun: o(t.int(1, 1000)),
    runMs: o(t.int(1000, 86400000)),
    runCostUsd: o(t.number(0, 10000)),
    runTokens: tokens,
    /** A day's limit of each session. */
    sessionDayCostUsd: usd,
    sessionDayTokens: tokens,
    /** A day's limit of each agent. */
    agentDayCostUsd: usd,
    agentDayTokens: tokens,
    /** A day's limit of each guest: a person other than you who writes on a channel. */
    guestDayCostUsd: usd,
    guestDayTokens: tokens,
    /** A day's limit of all guests together. */
    guestsDayCostUsd: usd,
    guestsDayTokens: tokens,
    dayCostUsd: usd,
    dayTokens: tokens,
    monthCostUsd: usd,
    monthTokens: tokens,
  },
);
export const AuthConfig = struct("AuthConfig", "Browser origins that may connect. Manage tokens with `gsv token`.", {
  allowedOrigins: o(t.array(t.string(256), 64)),
});
export const TranscriptionConfig = struct("TranscriptionConfig", "Speech to text.", {
  provider: o(enumOf("TranscriptionProvider", "The service that transcribes speech.", ["workers-ai", "openai"])),
  /** URL of an OpenAI-compatible server. Its key is `apiKeys.openai`. */
  baseUrl: o(url),
  model: o(t.string(256, { minLength: 1 })),
  /** ISO 639-1. Set it when all speech is in one language. */
  language: o(t.string(8)),
});
export const EmbeddingsConfig = struct(
  "EmbeddingsConfig",
  "What compares the meaning of long-term memories with that of a question. `built-in` sends nothing anywhere. With `openai` and `workers-ai` the texts of memories, and each question about them, are sent to that service.",
  {
    provider: o(enumOf("EmbeddingsProvider", "What turns texts into vectors.", ["built-in", "openai", "workers-ai"])),
    /** For `openai`: URL of another OpenAI-compatible server. Its key is `apiKeys.openai`. */
    baseUrl: o(url),
    /** Absent: the usual one of the provider. A change makes all vectors again. */
    model: o(t.string(256, { minLength: 1 })),
    /** Numbers of a vector. Needed for a model that GSV does not know. */
    dimensions: o(t.int(16, 4096)),
    /** US dollars for a million tokens. Absent: the known price of the model; without one its tokens count toward the limits of tokens. */
    price: o(t.number(0, 1000)),
  },
);
export const MemoryConfig = struct("MemoryConfig", "Long-term memory.", { embeddings: o(EmbeddingsConfig) });
export const DmPolicy = enumOf("DmPolicy", "How messages of unknown senders are handled.", ["open", "allowlist", "pairing"]);
export const ChannelConfig = struct(
  "ChannelConfig",
  "Who may write to the agent on a channel, and which of your tools they may use. Careful with `guestTools` (such as `laptop__Read` or `laptop__*`): everyone who may write on the channel can make the agent use these tools of your machines. Without it only you can.",
  {
    dmPolicy: o(DmPolicy),
    allowFrom: o(t.array(t.string(256), 10000)),
    /** Ids of your own accounts: their direct messages belong to your own conversation and have your rights. */
    owners: o(t.array(t.string(256), 64)),
    /** The chat of the channel's account with itself is yours, and has your rights. Only for a channel that you trust with that. */
    selfChat: o(t.bool()),
    /** When the agent answers in groups, channels and threads. */
    groups: o(enumOf("GroupPolicy", "When the agent answers in conversations with several people.", ["mention", "all", "off"])),
    /** When not empty, the agent answers only in these groups. */
    groupAllow: o(t.array(t.string(256), 10000)),
    /** The reaction that marks a message as seen. Empty: no reaction. */
    reaction: o(t.string(64)),
    /**
     * Tools of your machines that other people's conversations on this channel may use, by full name, with `*` for any characters, such
     * as `laptop__Read`. Careful: everyone who may write there can make the agent use them, also in ways that you did not intend. The
     * gateway's own tools can't be opened. A guest with one conversation for several channels (`session.dmScope` per-peer) gets none.
     */
    guestTools: o(t.array(t.string(192, { minLength: 1 }), 64)),
  },
);
export const ResetPolicyConfig = struct("ResetPolicyConfig", "When sessions are reset automatically.", {
  mode: o(ResetMode),
  atHour: o(t.int(0, 23)),
  idleMinutes: o(t.int(1, 525600)),
});
export const DmScope = enumOf("DmScope", "How direct messages map to sessions.", [
  "main",
  "per-peer",
  "per-channel-peer",
  "per-account-channel-peer",
]);
export const SessionConfig = struct("SessionConfig", "Sessions.", {
  defaultResetPolicy: o(ResetPolicyConfig),
  mainKey: o(t.string(64, { minLength: 1 })),
  dmScope: o(DmScope),
  identityLinks: o(t.map(t.array(t.string(256), 256))),
});
export const SkillEntryConfig = struct("SkillEntryConfig", "Your settings for a skill. They override its own.", {
  enabled: o(t.bool()),
  always: o(t.bool()),
  requires: o(struct("SkillRequiresConfig", "Needs of a skill.", { capabilities: o(t.array(t.string(64), 64)) })),
});
export const SkillsConfig = struct("SkillsConfig", "Skills.", { entries: o(t.map(SkillEntryConfig)) });
export const ApprovalDecision = enumOf("ApprovalDecision", "The decision of a rule.", ["allow", "ask", "deny"]);
export const ApprovalCondition = struct("ApprovalCondition", "A condition on a call's arguments.", {
  /** An argument, such as `path` or `command`. Of a Bash call `command` is compared as argument vectors. */
  path: t.string(256),
  op: enumOf("ApprovalOp", "How to compare.", ["equals", "contains", "startsWith", "regex"]),
  /** A text; for `equals` any value. For `command` also a list of words, such as ["git", "status"]. */
  value: t.json(),
  /** Flags of `regex`: i, m and s. */
  flags: o(t.string(8)),
});
export const ApprovalRule = struct("ApprovalRule", "One rule; the first that matches wins.", {
  id: t.string(64),
  tool: t.string(192),
  when: o(t.array(ApprovalCondition, 16)),
  decision: ApprovalDecision,
  reason: o(t.string(1024)),
});
export const ApprovalConfig = struct("ApprovalConfig", "Which tool calls need your approval.", {
  /** For calls that no rule decides. Absent: `defaultDecision`. `full` is not for the configuration: it is set for one session. */
  mode: o(PolicyMode),
  /** For calls that no rule decides, where no mode is set. Absent: they run. */
  defaultDecision: o(ApprovalDecision),
  rules: o(t.array(ApprovalRule, 256)),
});
export const HeartbeatHours = struct("HeartbeatHours", "When heartbeats may run.", {
  start: o(t.string(5)),
  end: o(t.string(5)),
  timezone: o(t.string(64)),
});
export const HeartbeatConfig = struct("HeartbeatConfig", "Heartbeat: a regular run of the agent.", {
  /** `30m`, `2h30m`; `0` is off. Absent: off. */
  every: o(t.string(16)),
  /** What the agent is told. Absent: to read HEARTBEAT.md and to do what is due. */
  prompt: o(t.string(8192)),
  /** `last`, `none`, or a full place such as `whatsapp/default/dm/ID`. Absent: `last`. */
  target: o(t.string(512)),
  /** Absent: the whole day. */
  activeHours: o(HeartbeatHours),
});
const notified = o(t.string(512, { minLength: 1 }));
export const QuietHours = struct("QuietHours", "When notifications are held back. Absent: never.", {
  /** Such as `22:00`. Absent while `end` is set: `00:00`. */
  start: o(t.string(5)),
  /** Absent while `start` is set: `24:00`. */
  end: o(t.string(5)),
  /** Absent: `userTimezone`. */
  timezone: o(t.string(64)),
  /** Hold questions that wait for an answer back too. */
  everything: o(t.bool()),
});
export const NotificationsConfig = struct(
  "NotificationsConfig",
  "Where you are told what you should know, by kind: `main` (the main conversation), `last` (your direct chat that was active last), a full place such as `whatsapp/default/dm/ID`, `desktop` (a connected machine), `desktop/NODE`, or `none`. A place that does not work is replaced by another one.",
  {
    approval: notified,
    job: notified,
    budget: notified,
    channel: notified,
    undelivered: notified,
    skill: notified,
    guest: notified,
    machine: notified,
    reminder: notified,
    quietHours: o(QuietHours),
  },
);
export const AgentConfig = struct("AgentConfig", "One agent.", {
  id: AgentId,
  default: o(t.bool()),
  model: o(ModelRef),
  systemPrompt: o(t.string(65536)),
  heartbeat: o(HeartbeatConfig),
  description: o(t.string(1024)),
});
export const BindingPeer = struct("BindingPeer", "A conversation to match.", { kind: o(t.string(16)), id: o(t.string(256)) });
export const BindingMatch = struct("BindingMatch", "What to match; absent fields match anything.", {
  channel: o(t.string(64)),
  accountId: o(t.string(128)),
  peer: o(BindingPeer),
});
export const AgentBinding = struct("AgentBinding", "Which agent answers where.", { agentId: AgentId, match: BindingMatch });
export const AgentsConfig = struct("AgentsConfig", "Agents.", {
  list: o(t.array(AgentConfig, 256)),
  bindings: o(t.array(AgentBinding, 1024)),
  defaultHeartbeat: o(HeartbeatConfig),
});
export const CompactionConfig = struct("CompactionConfig", "How a long conversation is shortened.", {
  enabled: o(t.bool()),
  reserveTokens: o(t.int(0, 10000000)),
  keepRecentTokens: o(t.int(0, 10000000)),
  extractMemories: o(t.bool()),
  /** The model for summaries and memories. Absent: the model of the conversation. */
  model: o(ModelRef),
});
export const CronConfig = struct("CronConfig", "Schedules.", {
  enabled: o(t.bool()),
  maxJobs: o(t.int(0, 200)),
  maxRunsPerJobHistory: o(t.int(0, 200)),
  maxConcurrentRuns: o(t.int(1, 16)),
});
export const JobsConfig = struct("JobsConfig", "Jobs that other programs submit.", {
  /** Jobs that run at once. */
  maxConcurrent: o(t.int(1, 64)),
});
const packName = t.string(32, { pattern: "^[a-z][a-z0-9-]*$" });
export const PacksConfig = struct("PacksConfig", "Packs: tools, agents and events for one kind of business.", {
  /** The packs that are on. */
  enabled: o(t.array(packName, 32)),
  /** By pack and name. `docs/packs.md` says which a pack has. */
  settings: o(t.map(t.map(t.string(2048)))),
  /** By pack and name. Stored encrypted, never shown. */
  secrets: o(t.map(t.map(t.string(8192)))),
});

export const OtlpConfig = struct(
  "OtlpConfig",
  "A collector that gets a trace of each run, by the OpenTelemetry protocol over HTTP with JSON. Off without an endpoint.",
  {
    /** The collector's base address: `https://...`, or `http://` on this machine. `/v1/traces` is added to it. */
    endpoint: o(url),
    /** Sent with each export, such as `authorization`. Stored encrypted, never shown. */
    headers: o(t.map(t.string(4096))),
    /** Traces contain texts of messages and arguments and results of tools too, without secrets that GSV knows. Absent: false. */
    content: o(t.bool()),
  },
);
export const TelemetryConfig = struct("TelemetryConfig", "Traces for other programs.", { otlp: o(OtlpConfig) });

export const GsvConfig = struct("GsvConfig", "Every setting. All are optional: an absent setting has its default.", {
  model: o(ModelConfig),
  providers: o(t.map(ProviderConfig)),
  apiKeys: o(t.map(t.string(8192))),
  cloud: o(CloudConfig),
  timeouts: o(TimeoutsConfig),
  limits: o(LimitsConfig),
  auth: o(AuthConfig),
  transcription: o(TranscriptionConfig),
  memory: o(MemoryConfig),
  channels: o(t.map(ChannelConfig)),
  systemPrompt: o(t.string(65536)),
  session: o(SessionConfig),
  skills: o(SkillsConfig),
  toolApproval: o(ApprovalConfig),
  agents: o(AgentsConfig),
  compaction: o(CompactionConfig),
  cron: o(CronConfig),
  jobs: o(JobsConfig),
  packs: o(PacksConfig),
  notifications: o(NotificationsConfig),
  telemetry: o(TelemetryConfig),
  userTimezone: o(t.string(64)),
});

/** Values of settings that are not set. */
export const CONFIG_DEFAULTS = {
  model: { provider: "demo", id: "demo", fallbacks: [] },
  providers: {},
  apiKeys: {},
  timeouts: { llmMs: 600000, toolMs: 60000 },
  limits: {
    stepsPerRun: 50,
    runMs: 1800000,
    runCostUsd: 1,
    runTokens: 5000000,
    guestDayCostUsd: 1,
    guestDayTokens: 2000000,
    guestsDayCostUsd: 5,
    guestsDayTokens: 10000000,
    dayCostUsd: 10,
    dayTokens: 100000000,
  },
  auth: { allowedOrigins: [] },
  transcription: { provider: "workers-ai" },
  memory: { embeddings: { provider: "built-in" } },
  channels: { whatsapp: { dmPolicy: "pairing", allowFrom: [] }, discord: { dmPolicy: "pairing", allowFrom: [] } },
  session: { defaultResetPolicy: { mode: "daily", atHour: 4 }, mainKey: "main", dmScope: "main", identityLinks: {} },
  skills: { entries: {} },
  agents: { list: [], bindings: [] },
  compaction: { enabled: true, reserveTokens: 20000, keepRecentTokens: 20000, extractMemories: true },
  jobs: { maxConcurrent: 4 },
  packs: { enabled: [] },
  userTimezone: "UTC",
} as const;
/** Paths (dot form, `*` for one segment) whose values are never shown. */
export const SECRET_PATHS = ["apiKeys.*", "model.headers.*", "packs.secrets.*.*", "telemetry.otlp.headers.*"] as const;
/**
 * Settings that no part of GSV reads yet, with all below them. They cannot be set; stored ones are kept and are not in force.
 * `npm run check` compares this list with the readers.
 */
export const NOT_SERVED_PATHS = ["cron"] as const;

method("config.get", {
  doc: "Returns the effective configuration, or one path of it. Secrets are masked.",
  params: { path: t.optional(t.string(512)) },
  result: {
    path: t.optional(t.string(512)),
    value: t.optional(t.json()),
    config: t.optional(t.json()),
    /** The version of the whole configuration, for `config.replace`; given without a path. */
    version: t.optional(t.int()),
    /** Stored settings, at the path or below it, that this gateway does not read. They are no part of `config`. */
    notInForce: t.optional(t.array(t.string(512), 64)),
    /** Secrets that are stored, but cannot be opened: their key is missing, or they were changed. Enter them again. */
    unreadable: t.optional(t.array(t.string(512), 64)),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: ["config.unknown_path"],
  idempotent: true,
});
method("config.set", {
  doc: "Sets one path. An unknown path, an invalid value and a setting that nothing reads are refused; the error names the nearest valid path or value.",
  params: { path: t.string(512, { minLength: 1 }), value: t.json() },
  result: {
    ok: t.literal(true),
    path: t.string(512),
    /** What the new value does not do now, such as a rule for a machine that is not known. */
    warnings: t.optional(t.array(t.string(1024), 64)),
  },
  callers: ["client"],
  scope: "admin",
  audit: { target: "path" },
  errors: ["config.unknown_path", "config.not_served", "config.invalid", "config.too_large", "config.no_sealing_key"],
  idempotent: true,
});
method("config.replace", {
  doc: "Replaces the whole configuration by an edited copy of what `config.get` returned. Only differences from that copy are stored: a default that was shown stays one, a masked secret is kept, and a setting that is missing gets its default. Everything is checked before anything is stored.",
  params: {
    config: t.json(),
    /** The version that `config.get` returned with the copy. */
    version: t.int(),
  },
  result: {
    ok: t.literal(true),
    version: t.int(),
    /** The settings that differ now; of more than 64 the first. */
    changed: t.array(t.string(512), 64),
    warnings: t.optional(t.array(t.string(1024), 64)),
  },
  callers: ["client"],
  scope: "admin",
  audit: "own",
  errors: ["config.unknown_path", "config.not_served", "config.invalid", "config.too_large", "config.changed", "config.no_sealing_key"],
});
method("config.unset", {
  doc: "Resets one path to its default.",
  params: { path: t.string(512, { minLength: 1 }) },
  result: {
    ok: t.literal(true),
    path: t.string(512),
    wasSet: t.bool(),
    /** What the default does not do now, as in `config.set`. */
    warnings: t.optional(t.array(t.string(1024), 64)),
  },
  callers: ["client"],
  scope: "admin",
  audit: { target: "path" },
  errors: ["config.unknown_path", "config.invalid"],
  idempotent: true,
});
