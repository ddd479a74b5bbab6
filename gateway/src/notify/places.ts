/** Where notifications are told (rules NT5, NT6): settings as places, and what is tried when a place does not work. PURE. */
import type { GsvConfig, NotificationKind } from "../../../protocol/gen/types.ts";
import { failure, type Result, succeed } from "../ports/result.ts";
import { parseTarget, type Target } from "../tools/message-target.ts";
import { isMachineName } from "../tools/registry.ts";
import { hoursOf, type Hours } from "../schedule/beat.ts";
import { KIND_NAMES, KINDS } from "./kinds.ts";

export type Way =
  | { readonly kind: "main" | "last" | "none" }
  /** `nodeId` absent: any connected machine. */
  | { readonly kind: "desktop"; readonly nodeId?: string }
  | { readonly kind: "channel"; readonly target: Target };

export const MAIN: Way = { kind: "main" };
const DESKTOP: Way = { kind: "desktop" };
const DESKTOP_OF = "desktop/";
const SHOWN_CHARS = 120;

/** Undefined: there is no such place. */
export function parsePlace(text: string): Way | undefined {
  if (text === "main" || text === "last" || text === "none") return { kind: text };
  if (text === "desktop") return DESKTOP;
  if (text.startsWith(DESKTOP_OF)) {
    const nodeId = text.slice(DESKTOP_OF.length);
    return isMachineName(nodeId) ? { kind: "desktop", nodeId } : undefined;
  }
  const target = parseTarget(text);
  return target?.accountId === undefined ? undefined : { kind: "channel", target };
}
type Settings = Pick<GsvConfig, "notifications" | "userTimezone">;

/** What the owner has set; undefined: nothing. */
export const chosenPlace = ({ notifications = {} }: Settings, kind: NotificationKind): string | undefined =>
  KINDS[kind].chosen(notifications);
export const placeOf = (settings: Settings, kind: NotificationKind): string => chosenPlace(settings, kind) ?? KINDS[kind].place;
/** The ways that are tried, in order. The last one always works. */
export function waysOf(place: string): readonly Way[] {
  const way = parsePlace(place) ?? MAIN;
  if (way.kind === "main" || way.kind === "none") return [way];
  return way.kind === "desktop" ? [way, MAIN] : [way, DESKTOP, MAIN];
}
/** Quiet hours hold this kind back. */
export const isHeld = ({ notifications }: Settings, kind: NotificationKind): boolean =>
  KINDS[kind].isHeld || notifications?.quietHours?.everything === true;

/** The value undefined: there are no quiet hours. */
export function quietHours({ notifications, userTimezone = "UTC" }: Settings): Result<Hours | undefined> {
  const given = notifications?.quietHours;
  if (given === undefined || (given.start === undefined && given.end === undefined)) return succeed(undefined);
  const read = hoursOf(given, userTimezone);
  if (read.ok) return read;
  return failure("config.invalid", read.error.message.replace("for the whole day", "for no quiet hours"));
}

/** What is wrong with the settings, as sentences. */
export function notificationProblems(settings: Settings): readonly string[] {
  const bad = KIND_NAMES.flatMap((kind) => {
    const place = chosenPlace(settings, kind);
    if (place === undefined || parsePlace(place) !== undefined) return [];
    return [
      `notifications.${kind}: \`${place.slice(0, SHOWN_CHARS)}\` is not a place. Places are \`main\`, \`last\`, \`desktop\`, \`desktop/NODE\`, \`none\`, and your direct chats, such as \`whatsapp/default/dm/ID\`.`,
    ];
  });
  const hours = quietHours(settings);
  return hours.ok ? bad : [...bad, `notifications.quietHours: ${hours.error.message}`];
}
