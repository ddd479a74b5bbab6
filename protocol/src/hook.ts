/** Hooks: addresses at which other services wake the agent (gateway/spec/hooks.md). */
import { CronOutcome, CronSpec } from "./cron.ts";
import { enumOf, method, struct, t, tagged } from "./dsl.ts";
import { AgentId } from "./ids.ts";

const HookName = t.string(48, { minLength: 1, pattern: "^[a-z0-9][a-z0-9_-]*$" });
const JobId = t.string(64, { minLength: 1, pattern: "^[a-z0-9][a-z0-9_-]*$" });
const Condition = t.string(256, { minLength: 3 });

export const HookForm = enumOf(
  "HookForm",
  `How the sender of a hook proves that it knows the secret. \`standard\`: the headers webhook-id, webhook-timestamp and webhook-signature of
Standard Webhooks. \`github\`: X-Hub-Signature-256. \`stripe\`: Stripe-Signature. \`bearer\`: the secret itself as a bearer token.`,
  ["standard", "github", "stripe", "bearer"],
);
export const HookTarget = tagged("HookTarget", "What a delivery of a hook does.", "kind", {
  /** A run of the hook's own. The text of `spec` is a template. */
  run: { spec: CronSpec },
  /** A run of a job, beside its schedule. */
  job: {
    jobId: JobId,
    /** A template, which follows the job's own text. Absent: the whole body. */
    message: t.optional(t.string(8192, { minLength: 1 })),
  },
});
export const Hook = struct("Hook", "A hook. Its secret is never shown again.", {
  name: HookName,
  /** The path below the gateway's address, such as `/hooks/issues`. */
  path: t.string(64),
  agentId: AgentId,
  form: HookForm,
  target: HookTarget,
  /** `PATH=VALUE,VALUE`: only deliveries for which each of them is true wake the agent. */
  only: t.array(Condition, 16),
  createdAtMs: t.time(),
  /** Deliveries that were accepted, once each. */
  accepted: t.int(),
  /** Deliveries that `only` left out. */
  ignored: t.int(),
  /** Requests with a wrong signature. */
  refused: t.int(),
  /** Accepted deliveries that have not begun. */
  waiting: t.int(),
  lastAtMs: t.optional(t.time()),
  lastRefusedAtMs: t.optional(t.time()),
  /** Why no delivery can be accepted now. */
  problem: t.optional(t.string(512)),
});
export const HookDelivery = struct("HookDelivery", "What became of one delivery.", {
  /** The sender's id of the delivery, or one of the gateway's own. */
  deliveryId: t.string(256),
  atMs: t.time(),
  status: CronOutcome,
  error: t.optional(t.string(2048)),
  /** The beginning of the answer. */
  summary: t.optional(t.string(2048)),
});
export const HookTaken = struct("HookTaken", "The answer to a delivery.", {
  status: enumOf(
    "HookTakenStatus",
    "`accepted`: it is stored and will be run once. `repeated`: it was accepted before. `ignored`: the hook leaves such deliveries out.",
    ["accepted", "repeated", "ignored"],
  ),
});

method("hook.add", {
  doc: "Adds a hook and returns its secret, which no other method returns.",
  params: {
    name: HookName,
    form: HookForm,
    agentId: t.optional(AgentId),
    target: HookTarget,
    only: t.optional(t.array(Condition, 16)),
    /** A secret that the other service has made. Absent: the gateway makes one. */
    secret: t.optional(t.string(512, { minLength: 16 })),
  },
  result: {
    ok: t.literal(true),
    hook: Hook,
    /** Only when the gateway has made it. */
    secret: t.optional(t.string(512)),
  },
  callers: ["client"],
  scope: "operate",
  audit: { target: "name" },
  errors: [
    ...["hook.exists", "hook.too_many", "hook.bad_secret", "hook.bad_template", "config.no_sealing_key", "agent.unknown"],
    ...["cron.not_found", "channel.unknown", "session.bad_key", "auth.forbidden"],
  ],
});
method("hook.list", {
  doc: "Lists the hooks.",
  result: { hooks: t.array(Hook, 50) },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("hook.show", {
  doc: "Returns a hook and what became of its last deliveries, the newest first.",
  params: { name: HookName, limit: t.optional(t.int(1, 200)) },
  result: { hook: Hook, deliveries: t.array(HookDelivery, 200) },
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["hook.not_found"],
  idempotent: true,
});
method("hook.remove", {
  doc: "Removes a hook, its secret, and deliveries that have not begun.",
  params: { name: HookName },
  result: { ok: t.literal(true), removed: t.bool() },
  callers: ["client"],
  scope: "operate",
  audit: { target: "name" },
  idempotent: true,
});
method("hook.test", {
  doc: "Returns a signed sample for the caller to send to the hook's address. It is good for a few minutes and for one delivery, and has no secret in it.",
  params: {
    name: HookName,
    /** JSON. Absent: `{"test": true}` with the name of the hook. */
    body: t.optional(t.string(65536, { minLength: 2 })),
    /** The event of a GitHub hook. */
    event: t.optional(t.string(64, { minLength: 1, pattern: "^[a-z0-9_]+$" })),
  },
  result: { path: t.string(64), headers: t.map(t.string(1024)), body: t.string(131072), deliveryId: t.string(256) },
  callers: ["client"],
  scope: "operate",
  audit: { target: "name" },
  errors: ["hook.not_found", "hook.bad_body", "hook.no_target"],
});
