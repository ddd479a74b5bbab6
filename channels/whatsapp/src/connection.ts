/**
 * The life of the account's one socket, as a pure machine: state and event in, state and effects out. There is never a second socket:
 * `OpenSocket` is asked for only where none is. Time comes with the events, chance with the closing.
 *
 *   idle -> pairing -> (515) connecting -> open -> waiting -> connecting ...      stopped: until a person acts
 */

export type State =
  /** No socket, and none wanted: nobody has logged in, or the account is stopped. */
  | { readonly kind: "idle"; readonly note?: string }
  /** The socket of a login: it shows a code until a phone takes it. */
  | { readonly kind: "pairing"; readonly since: number; readonly until: number; readonly phone?: string }
  | { readonly kind: "connecting"; readonly since: number; readonly attempt: number }
  /** `attempt` is what it took: only a connection that held makes it forgotten. */
  | { readonly kind: "open"; readonly since: number; readonly attempt: number }
  | { readonly kind: "waiting"; readonly until: number; readonly attempt: number; readonly note: string }
  /** It does not come back by itself. */
  | { readonly kind: "stopped"; readonly note: string };

export type Event =
  /** The alarm, or a start, which is `asked` by a person: there should be a connection. */
  | {
      readonly type: "wanted";
      readonly now: number;
      readonly paired: boolean;
      readonly lastStanzaAt: number | undefined;
      readonly asked: boolean;
    }
  | { readonly type: "login"; readonly now: number; readonly paired: boolean; readonly force: boolean; readonly phone?: string }
  | { readonly type: "opened"; readonly now: number }
  /** `reason` is WhatsApp's number, undefined when the network failed. `random` in [0, 1). */
  | {
      readonly type: "closed";
      readonly now: number;
      readonly reason: number | undefined;
      readonly paired: boolean;
      readonly random: number;
    }
  | { readonly type: "disconnect"; readonly note?: string }
  | { readonly type: "loggedOut" };

export type Effect =
  | { readonly type: "OpenSocket" }
  | { readonly type: "CloseSocket" }
  /** The link is gone: its keys are of no use to anybody. */
  | { readonly type: "ClearKeys" }
  | { readonly type: "WakeAfter"; readonly ms: number }
  /** For a time nobody listened, and WhatsApp may have given the messages to somebody else. */
  | { readonly type: "MarkGap"; readonly why: string };

export interface Step {
  readonly state: State;
  readonly effects: readonly Effect[];
}

export const CONNECTION = {
  firstWaitMs: 2_000,
  longestWaitMs: 300_000,
  /** The server answers a ping every 30 s; after this it is dead. */
  silentMs: 75_000,
  /** A socket still connecting is left alone for this long, and its own limit is shorter. */
  connectingMs: 60_000,
  pairingMs: 120_000,
  settledMs: 60_000,
  badSessions: 3,
} as const;

export const REASON = {
  restart: 515,
  loggedOut: 401,
  forbidden: 403,
  timedOut: 408,
  mismatch: 411,
  replaced: 440,
  badSession: 500,
} as const;
const FINAL: Readonly<Record<number, string>> = {
  [REASON.forbidden]:
    "WhatsApp refuses this number (403). Look at WhatsApp on the phone; when it works there again, start the channel: gsv channel whatsapp start",
  [REASON.mismatch]: "WhatsApp on the phone does not allow linked devices (411). Update it, then log in again.",
  [REASON.badSession]: "WhatsApp broke the session off (500). Start the channel again; if it happens again, log in anew with --force.",
};
export const LOGGED_OUT = "The phone unlinked this device. Log in again: gsv channel whatsapp login";
const REPLACED = "Another program uses this linked device (440). Stop it, or log in again here.";

const lostLogin = (reason: number | undefined): string =>
  `WhatsApp could not be reached, or broke the login off${reason === undefined ? "" : ` (${reason})`}. Look whether this machine is online, then begin again: gsv channel whatsapp login`;

/** 2 s, 4 s, ... five minutes, a quarter up or down. */
export function waitAfter(attempt: number, random: number): number {
  const wait = Math.min(CONNECTION.longestWaitMs, CONNECTION.firstWaitMs * 2 ** Math.min(20, Math.max(0, attempt)));
  return Math.round(Math.min(CONNECTION.longestWaitMs, wait * (0.75 + random / 2)));
}
const hasSocket = ({ kind }: State): boolean => kind === "pairing" || kind === "connecting" || kind === "open";
const stay = (state: State): Step => ({ state, effects: [] });
const connect = (now: number, attempt: number): Step => ({
  state: { kind: "connecting", since: now, attempt },
  effects: [{ type: "OpenSocket" }],
});

export function step(state: State, event: Event): Step {
  switch (event.type) {
    case "wanted":
      return wanted(state, event);
    case "login":
      return login(state, event);
    case "opened":
      if (!hasSocket(state) || state.kind === "open") return stay(state);
      return stay({ kind: "open", since: event.now, attempt: state.kind === "connecting" ? state.attempt : 0 });
    case "closed":
      return closed(state, event);
    case "disconnect":
      return {
        state: { kind: "idle", ...(event.note === undefined ? {} : { note: event.note }) },
        effects: hasSocket(state) ? [{ type: "CloseSocket" }] : [],
      };
    case "loggedOut":
      return {
        state: { kind: "idle" },
        effects: [...(hasSocket(state) ? ([{ type: "CloseSocket" }] as const) : []), { type: "ClearKeys" }],
      };
  }
}

function wanted(state: State, { now, paired, lastStanzaAt, asked }: Extract<Event, { type: "wanted" }>): Step {
  switch (state.kind) {
    case "idle":
      return paired ? connect(now, 0) : stay(state);
    case "waiting":
      return now >= state.until ? connect(now, state.attempt) : stay(state);
    case "stopped":
      return asked && paired ? connect(now, 0) : stay(state);
    case "pairing":
      return now >= state.until ? expire() : stay(state);
    case "connecting":
      // It is never replaced while it may still become one; only what is stuck for good is closed, and then waited for.
      return now - state.since > CONNECTION.connectingMs ? retire(state.attempt, now, "Connecting took too long.") : stay(state);
    case "open": {
      const heard = Math.max(state.since, lastStanzaAt ?? 0);
      return now - heard > CONNECTION.silentMs ? retire(attemptOf(state, now), now, "WhatsApp fell silent.") : stay(state);
    }
  }
}
function retire(attempt: number, now: number, note: string): Step {
  const ms = waitAfter(attempt, 0.5);
  return {
    state: { kind: "waiting", until: now + ms, attempt: attempt + 1, note },
    effects: [{ type: "CloseSocket" }, { type: "WakeAfter", ms }],
  };
}
/** Two programs on one link would throw each other out for ever: what holds for less than a minute counts as a try. */
function attemptOf(state: State, now: number): number {
  if (state.kind === "connecting") return state.attempt;
  return state.kind === "open" && now - state.since < CONNECTION.settledMs ? state.attempt : 0;
}
const expire = (): Step => giveUp("The login was not finished in time. Begin again: gsv channel whatsapp login");
const giveUp = (note: string): Step => ({ state: { kind: "idle", note }, effects: [{ type: "CloseSocket" }] });

function login(state: State, { now, paired, force, phone }: Extract<Event, { type: "login" }>): Step {
  const close: readonly Effect[] = hasSocket(state) ? [{ type: "CloseSocket" }] : [];
  const begin: State = { kind: "pairing", since: now, until: now + CONNECTION.pairingMs, ...(phone === undefined ? {} : { phone }) };
  if (paired && !force) {
    if (hasSocket(state)) return stay(state);
    return connect(now, state.kind === "waiting" ? state.attempt : 0);
  }
  // A code that is shown goes on being shown; another way to log in needs another socket.
  if (!force && state.kind === "pairing" && state.phone === phone && now <= state.until) return stay(state);
  return {
    state: begin,
    effects: [...close, { type: "ClearKeys" }, { type: "OpenSocket" }, { type: "WakeAfter", ms: CONNECTION.pairingMs }],
  };
}

function closed(state: State, { now, reason, paired, random }: Extract<Event, { type: "closed" }>): Step {
  if (!hasSocket(state)) return stay(state);
  // The end of a login, and now and then of a session: come back at once.
  if (reason === REASON.restart && paired) return connect(now, 0);
  if (reason === REASON.loggedOut) return { state: { kind: "stopped", note: LOGGED_OUT }, effects: [{ type: "ClearKeys" }] };
  const final = reason === undefined ? undefined : FINAL[reason];
  // Baileys says 500 also for what it does not know: only when it comes back at once, again and again, it is the session.
  const again = reason === REASON.badSession && paired && attemptOf(state, now) < CONNECTION.badSessions;
  if (final !== undefined && !again) return stay({ kind: "stopped", note: final });
  if (!paired) return reason === REASON.timedOut ? expire() : giveUp(lostLogin(reason));
  const attempt = attemptOf(state, now);
  const ms = waitAfter(attempt, random);
  const replaced = reason === REASON.replaced;
  return {
    state: {
      kind: "waiting",
      until: now + ms,
      attempt: attempt + 1,
      note: replaced ? REPLACED : `The connection to WhatsApp was lost${reason === undefined ? "" : ` (${reason})`}; trying again.`,
    },
    effects: [
      ...(replaced ? ([{ type: "MarkGap", why: "another program used the linked device" }] as const) : []),
      { type: "WakeAfter", ms },
    ],
  };
}
