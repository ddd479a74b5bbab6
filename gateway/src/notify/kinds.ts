/** The kinds of notifications (rule NT1). PURE: a table. */
import type { NotificationKind, NotificationsConfig } from "../../../protocol/gen/types.ts";

export interface Kind {
  /** Above the text on a desktop. */
  readonly title: string;
  readonly place: string;
  /** Quiet hours hold it back. */
  readonly isHeld: boolean;
  readonly chosen: (settings: NotificationsConfig) => string | undefined;
}
export const KINDS: Readonly<Record<NotificationKind, Kind>> = {
  approval: { title: "GSV waits for your word", place: "last", isHeld: false, chosen: ({ approval }) => approval },
  job: { title: "A job of GSV failed", place: "main", isHeld: true, chosen: ({ job }) => job },
  budget: { title: "A limit of GSV is used up", place: "main", isHeld: true, chosen: ({ budget }) => budget },
  channel: { title: "A channel of GSV is down", place: "main", isHeld: true, chosen: ({ channel }) => channel },
  undelivered: { title: "A message of GSV was not delivered", place: "main", isHeld: true, chosen: ({ undelivered }) => undelivered },
  skill: { title: "A skill of GSV changed", place: "main", isHeld: true, chosen: ({ skill }) => skill },
  guest: { title: "GSV could not answer a guest", place: "main", isHeld: true, chosen: ({ guest }) => guest },
  machine: { title: "A machine of GSV is not connected", place: "main", isHeld: true, chosen: ({ machine }) => machine },
  reminder: { title: "A reminder", place: "last", isHeld: false, chosen: ({ reminder }) => reminder },
};
export const KIND_NAMES = Object.keys(KINDS) as readonly NotificationKind[];
