/** `notifications.*`: what was told and where, and whether the chosen places work. `backup.report`: scheduled backups that fail (BK18). */
import { asAgentId, type Notification, type NotificationKind } from "../../../../protocol/gen/types.ts";
import type { Handlers } from "../../kernel/feature.ts";
import { KIND_NAMES } from "../../notify/kinds.ts";
import { chosenPlace, isHeld, parsePlace, placeOf, quietHours } from "../../notify/places.ts";
import { quietUntil } from "../../notify/quiet.ts";
import type { NotificationRow } from "../../ports/notify.ts";
import { fail } from "../../kernel/outcome.ts";
import { succeed } from "../../ports/result.ts";
import type { Desktops } from "./desktops.ts";
import type { NotificationsPorts } from "./ports.ts";
import type { Teller } from "./teller.ts";

const LISTED = 20;
const TEST_TEXT = "This is a test: notifications of this kind come here.";

export interface MethodPorts extends NotificationsPorts {
  readonly desktops: Desktops;
  readonly teller: Teller;
}

export function notificationMethods({ channelsOut, config, desktops, ids, notify, notifyRows, now, teller }: MethodPorts): Handlers {
  /** Why the place of a kind does not work now. */
  const problemOf = (place: string): string | undefined => {
    const way = parsePlace(place);
    switch (way?.kind) {
      case "channel":
        return channelsOut.problemOf(way.target);
      case "desktop": {
        const { nodeIds, problem } = desktops.able(way.nodeId);
        return nodeIds.length === 0 ? problem : undefined;
      }
      default:
        return undefined;
    }
  };
  const places = () => {
    const settings = config.effective();
    return KIND_NAMES.map((kind: NotificationKind) => {
      const place = placeOf(settings, kind);
      const problem = problemOf(place);
      const isDefault = chosenPlace(settings, kind) === undefined;
      return { kind, place, isDefault, held: isHeld(settings, kind), ...(problem === undefined ? {} : { problem }) };
    });
  };
  return {
    "notifications.list": (_caller, { limit = LISTED, beforeId, kind }) => {
      const rows = notifyRows.list(limit + 1, beforeId ?? Number.MAX_SAFE_INTEGER, kind);
      const settings = config.effective();
      const hours = quietHours(settings);
      const until = hours.ok ? quietUntil(hours.value, now()) : undefined;
      const { start, end, timezone = settings.userTimezone } = settings.notifications?.quietHours ?? {};
      return succeed({
        notifications: rows.slice(0, limit).map((row) => shown(row, now(), isHeld(settings, row.kind) ? until : undefined)),
        more: rows.length > limit,
        waiting: notifyRows.countWaiting(),
        places: places(),
        ...(hours.ok && hours.value !== undefined ? { quietHours: { start: start ?? "00:00", end: end ?? "24:00", timezone } } : {}),
        ...(until === undefined ? {} : { quietUntil: until }),
      });
    },
    "backup.report": (_caller, { since, problem }) => {
      const key = `backup:${since}`;
      if (problem === undefined) notify.over(key);
      else notify.tell({ kind: "job", key, cause: "backup", text: problem });
      return succeed({ ok: true } as const);
    },
    "notifications.test": async (_caller, { kind = "job" }) => {
      const key = `test:${ids.name(12)}`;
      const id = notify.tell({ kind, key, cause: key, text: TEST_TEXT, now: true });
      if (id === undefined) return fail("internal");
      teller.start();
      await teller.ended(id);
      const row = notifyRows.find(id);
      return row === undefined ? fail("internal") : succeed({ notification: shown(row, now()) });
    },
  };
}

/** `heldUntil`: the end of the quiet hours, when they hold it back. */
function shown(row: NotificationRow, now: number, heldUntil = 0): Notification {
  const isOver = row.body.until !== undefined && row.body.until <= now;
  const { id, kind, cause, text, createdAt, agentId, state, dueAt, toldAt, toldIn, withId, body } = row;
  return {
    id,
    kind,
    cause,
    text,
    createdAt,
    agentId: asAgentId(agentId),
    state,
    ...(isOver ? { overAt: row.body.until } : {}),
    ...(state === "waiting" && !isOver ? { dueAt: Math.max(dueAt, heldUntil) } : {}),
    ...(toldAt === undefined || state !== "told" ? {} : { toldAt }),
    ...(toldIn === undefined ? {} : { toldIn }),
    ...(withId === undefined ? {} : { with: withId }),
    ...(body.failures === undefined ? {} : { failures: body.failures.map(({ way, why }) => `${way}: ${why}`.slice(0, 512)) }),
  };
}
