/** Between features: what the owner should know. The rows are written at once; telling comes later (gateway/spec/notifications.md). */
import type { NotificationKind, NotificationState } from "../../../protocol/gen/types.ts";
import type { ChannelRef } from "./channels.ts";

export interface Tell {
  readonly kind: NotificationKind;
  /** The same key again is no second notification. */
  readonly key: string;
  /** The owner gets one notification an hour of one cause. */
  readonly cause: string;
  /** For a person. Stored secrets in it are masked. */
  readonly text: string;
  /** The text is the owner's own or the agent's, in Markdown. Absent: a chat shows it letter by letter. */
  readonly isMarkdown?: true;
  /** Absent: the default agent. */
  readonly agentId?: string;
  /** A conversation of the owner that it is about: the place `main` means this one. */
  readonly inSession?: string;
  /** A conversation that has been told already. */
  readonly toldSession?: string;
  /** The text is a question with this code: a chat shows buttons. */
  readonly question?: string;
  /** It is about this account, so it does not go over it. */
  readonly about?: ChannelRef;
  /** Told at once, also in quiet hours. */
  readonly now?: true;
  /** It is over then: it is told before, or not at all. */
  readonly until?: number;
}
export interface NotifyPort {
  readonly notify: {
    /** Durable when it returns, in the transaction of the caller if there is one. Returns the id; undefined: the key was known. */
    tell(tell: Tell): number | undefined;
    /** The cause with this key has ended. A notification that was not told yet is not told. */
    over(key: string): void;
    /** A delivery of a notification did not reach its platform. False: the delivery is of something else. */
    bounced(deliveryId: string, error: string): boolean;
  };
}

/** A notification and what has become of it. */
export interface NotificationRow {
  readonly id: number;
  readonly key: string;
  readonly kind: NotificationKind;
  readonly cause: string;
  readonly agentId: string;
  readonly text: string;
  readonly createdAt: number;
  readonly state: NotificationState;
  /** Not before this. */
  readonly dueAt: number;
  readonly toldAt?: number;
  readonly toldIn?: string;
  readonly withId?: number;
  readonly body: NotificationBody;
}
export interface WayFailure {
  /** `desktop/NODE`, a full place, `last` or `desktop`. */
  readonly way: string;
  readonly why: string;
}
export interface NotificationBody extends Pick<Tell, "inSession" | "toldSession" | "question" | "about" | "now" | "until" | "isMarkdown"> {
  /** Ways that did not work. */
  readonly failures?: readonly WayFailure[];
  /** Where it is being told. Of a desktop: it has not answered. */
  readonly asked?: string;
  /** Failures of the last way. */
  readonly tries?: number;
  /** Others that are told with this one and have no row. */
  readonly more?: number;
}
/** What the two parts of the feature share: one takes notifications early in the list of features, the other tells them. */
export interface NotifyRowsPort {
  readonly notifyRows: {
    /** The waiting ones, in the order of their times. */
    waiting(limit: number): readonly NotificationRow[];
    find(id: number): NotificationRow | undefined;
    /** Those that are told together with this one, the oldest first, itself among them. */
    together(id: number): readonly NotificationRow[];
    list(limit: number, beforeId: number, kind: NotificationKind | undefined): readonly NotificationRow[];
    countWaiting(): number;
    /** `others` are told together with `id`. */
    merge(id: number, others: readonly number[]): void;
    /** A way did not work. */
    failed(id: number, way: string, why: string): void;
    /** It is about to be told there; undefined: the place has answered. */
    asked(id: number, way: string | undefined): void;
    /** It could not be told in the last way, and waits until then. */
    wait(id: number, dueAt: number): void;
    end(id: number, state: "told" | "off", at: number, toldIn?: string): void;
    /** It is not told, nor what waits with it. */
    drop(id: number): void;
    /** Called when a notification was taken or must be told again. */
    onTaken(wake: (id: number) => void): void;
  };
}
