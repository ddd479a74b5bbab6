/** Notifications: what the owner should know, and where it is told. */
import { HeartbeatHours } from "./config.ts";
import { enumOf, event, method, struct, t } from "./dsl.ts";
import { AgentId } from "./ids.ts";

export const NotificationKind = enumOf(
  "NotificationKind",
  "What a notification is about. `approval`: a question of an unattended run waits. `job`: a job, a heartbeat, a hook or the scheduled backup fails. `budget`: a limit of money or tokens is nearly or wholly used up. `channel`: a channel is down, or messages may be missing. `undelivered`: a message did not reach its platform. `skill`: a skill changed and waits for your approval. `guest`: a run for a guest or a group failed. `machine`: a machine is not heard from. `reminder`: the time of a reminder has come.",
  ["approval", "job", "budget", "channel", "undelivered", "skill", "guest", "machine", "reminder"],
);
export const NotificationState = enumOf(
  "NotificationState",
  "`waiting`: it is told later, or is being told. `merged`: it was told together with another one. `told`: `toldIn` names the place. `off`: its kind goes to no place. `dropped`: too many waited, or it was over before it could be told.",
  ["waiting", "merged", "told", "off", "dropped"],
);
export const Notification = struct("Notification", "What the owner was told, or is to be told.", {
  id: t.int(),
  kind: NotificationKind,
  /** Notifications with the same cause are told once in an hour, and then together. */
  cause: t.string(512),
  text: t.string(4096),
  createdAt: t.time(),
  agentId: AgentId,
  state: NotificationState,
  /** When it is told, while it waits. */
  dueAt: t.optional(t.time()),
  toldAt: t.optional(t.time()),
  /** When its cause ended. A notification that was not told before is not told at all. */
  overAt: t.optional(t.time()),
  /** `main`, `desktop/NODE`, or a full place of a channel. */
  toldIn: t.optional(t.string(512)),
  /** The notification that it was told together with. */
  with: t.optional(t.int()),
  /** Ways that were tried first, each with what went wrong. */
  failures: t.optional(t.array(t.string(512), 16)),
});
export const NotificationPlace = struct("NotificationPlace", "Where notifications of a kind are told.", {
  kind: NotificationKind,
  place: t.string(512),
  /** The setting is not set. */
  isDefault: t.bool(),
  /** Whether quiet hours hold notifications of this kind back. */
  held: t.bool(),
  /** Why the place does not work now; another one is used instead. */
  problem: t.optional(t.string(1024)),
});

method("notifications.list", {
  doc: "Lists notifications, the newest first, and where each kind is told.",
  params: {
    limit: t.optional(t.int(1, 200)),
    /** Only notifications that are older than this one. */
    beforeId: t.optional(t.int()),
    kind: t.optional(NotificationKind),
  },
  result: {
    notifications: t.array(Notification, 200),
    more: t.bool(),
    waiting: t.int(),
    places: t.array(NotificationPlace, 32),
    quietHours: t.optional(HeartbeatHours),
    /** When the current quiet hours end. Absent: there are none now. */
    quietUntil: t.optional(t.time()),
  },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("notifications.test", {
  doc: "Sends a notification of a kind to where such notifications are told, also in quiet hours, and says which place took it.",
  params: { kind: t.optional(NotificationKind) },
  result: { notification: Notification },
  callers: ["client"],
  scope: "operate",
  audit: { target: "kind" },
});
method("backup.report", {
  doc: "The gateway's own machine reports that its scheduled backups fail, or that this is over. The owner gets one notification of the kind `job` for all failures in a row.",
  params: {
    /** The first of the failures. */
    since: t.time(),
    /** What happened and what to do, in sentences. Absent: a backup was made. */
    problem: t.optional(t.string(2048)),
  },
  result: { ok: t.literal(true) },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  idempotent: true,
});
event("notify.show", {
  doc: "The gateway asks a node to show a notification on the desktop of its machine. A node shows each id once.",
  payload: {
    showId: t.string(64, { minLength: 1 }),
    title: t.string(128),
    text: t.string(512),
  },
  to: ["node"],
});
method("notify.shown", {
  doc: "A node reports whether it has shown a notification.",
  params: {
    showId: t.string(64, { minLength: 1 }),
    /** Why it was not shown. Absent: it was. */
    problem: t.optional(t.string(512)),
  },
  result: { ok: t.literal(true), dropped: t.optional(t.bool()) },
  callers: ["node"],
  scope: "node",
  audit: "none",
  idempotent: true,
});
