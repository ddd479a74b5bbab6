/**
 * PURE. The state machine of the account's socket: state and event in, state and effects out. `OpenSocket` is an effect only when no
 * socket exists, so there is never a second one. Events carry the time and random numbers.
 *
 *   idle -> pairing -> (515) connecting -> open -> waiting -> connecting ...      stopped: until a person acts
 */

export type State =
  /** No socket and none wanted: no device is linked, or the account is stopped. */
  | { readonly kind: "idle"; readonly note?: string }
  /** The socket of a login: it shows a code until a phone confirms it. */
  | { readonly kind: "pairing"; readonly since: number; readonly until: number; readonly phone?: string }
  | { readonly kind: "connecting"; readonly since: number; readonly attempt: number }
  /** `attempt` counts the attempts so far; only a connection that stayed open resets it. */
  | { readonly kind: "open"; readonly since: number; readonly attempt: number }
  | { readonly kind: "waiting"; readonly until: number; readonly attempt: number; readonly note: string }
  /** Waits for a person. */
  | { readonly kind: "stopped"; readonly note: string };

export type Event =
  /** From the alarm or a start: a connection is wanted. `asked`: by a person. */
  | {
      readonly type: "wanted";
      readonly now: number;
      readonly paired: boolean;
      readonly lastStanzaAt: number | undefined;
      readonly asked: boolean;
    }
  | { readonly type: "login"; readonly now: number; readonly paired: boolean; readonly force: boolean; readonly phone?: string }
  | { readonly type: "opened"; readonly now: number }
  /** `reason` is WhatsApp's status code; undefined after a network failure. `random` is in [0, 1). */
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
  /** The link was removed, so its keys are useless. */
  | { readonly type: "ClearKeys" }
  | { readonly type: "WakeAfter"; readonly ms: number }
  /** Messages of a period may have gone to another program. */
  | { readonly type: "MarkGap"; readonly why: string };

export interface Step {
  readonly state: State;
  readonly effects: readonly Effect[];
}

export const CONNECTION = {
  firstWaitMs: 2_000,
  longestWaitMs: 300_000,
  /** The server answers a ping every 30 s; after this silence the connection is dead. */
  silentMs: 75_000,
  /** A connecting socket gets this much time; its own timeout is shorter. */
  connectingMs: 60_000,
  pairingMs: 120_000,
  settledMs: 60_000,
  badSessions: 3,
} as const;

const REASON = {
  restart: 515,
  loggedOut: 401,
  forbidden: 403,
  timedOut: 408,
  mismatch: 411,
  replaced: 440,
  /** Our own (platform/trust.ts): the server could not prove that it is WhatsApp. */
  untrusted: 495,
  badSession: 500,
} as const;
const FINAL: Readonly<Record<number, string>> = {
  [REASON.forbidden]:
    "WhatsApp refuses this number (403). Check WhatsApp on the phone. When it works there, run: `gsv channel whatsapp start`",
  [REASON.mismatch]: "WhatsApp on the phone does not allow linked devices (411). Update it, then log in again.",
  [REASON.badSession]:
    "WhatsApp ended the session (500). Run: `gsv channel whatsapp start`. If it happens again, run: `gsv channel whatsapp login --force`",
};
const LOGGED_OUT = "The phone unlinked this device. Log in again: `gsv channel whatsapp login`";
const REPLACED = "Another program uses this linked device (440). Stop that program, or run: `gsv channel whatsapp login --force`";
const UNTRUSTED =
  "The server could not prove that it is WhatsApp (495). Check this machine's clock and network; something may intercept the connection.";

const lostLogin = (reason: number | undefined): string =>
  `WhatsApp could not be reached, or it ended the login${reason === undefined ? "" : ` (${reason})`}. Check that this machine is online, then run: \`gsv channel whatsapp login\``;

/** Backoff in ms: 2 s, 4 s, ... at most five minutes, plus or minus 25 %. */
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
      // A connecting socket is never replaced; one that is stuck is closed, and the next attempt waits.
      return now - state.since > CONNECTION.connectingMs ? retire(state.attempt, now, "Connecting took too long.") : stay(state);
    case "open": {
      const lastHeard = Math.max(state.since, lastStanzaAt ?? 0);
      return now - lastHeard > CONNECTION.silentMs ? retire(attemptOf(state, now), now, "WhatsApp stopped answering.") : stay(state);
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
/** A connection that held less than a minute counts as an attempt; otherwise two programs on one link would evict each other in a loop. */
function attemptOf(state: State, now: number): number {
  if (state.kind === "connecting") return state.attempt;
  return state.kind === "open" && now - state.since < CONNECTION.settledMs ? state.attempt : 0;
}
const expire = (): Step => giveUp("The login was not finished in time. Run again: `gsv channel whatsapp login`");
const giveUp = (note: string): Step => ({ state: { kind: "idle", note }, effects: [{ type: "CloseSocket" }] });

function login(state: State, { now, paired, force, phone }: Extract<Event, { type: "login" }>): Step {
  const close: readonly Effect[] = hasSocket(state) ? [{ type: "CloseSocket" }] : [];
  const begin: State = { kind: "pairing", since: now, until: now + CONNECTION.pairingMs, ...(phone === undefined ? {} : { phone }) };
  if (paired && !force) {
    if (hasSocket(state)) return stay(state);
    return connect(now, state.kind === "waiting" ? state.attempt : 0);
  }
  // The same login continues to show its code; another login method needs another socket.
  if (!force && state.kind === "pairing" && state.phone === phone && now <= state.until) return stay(state);
  return {
    state: begin,
    effects: [...close, { type: "ClearKeys" }, { type: "OpenSocket" }, { type: "WakeAfter", ms: CONNECTION.pairingMs }],
  };
}

function closed(state: State, { now, reason, paired, random }: Extract<Event, { type: "closed" }>): Step {
  if (!hasSocket(state)) return stay(state);
  // WhatsApp asks for a restart after a login, and sometimes during a session: reconnect at once.
  if (reason === REASON.restart && paired) return connect(now, 0);
  if (reason === REASON.loggedOut) return { state: { kind: "stopped", note: LOGGED_OUT }, effects: [{ type: "ClearKeys" }] };
  const final = reason === undefined ? undefined : FINAL[reason];
  // Baileys uses 500 also for unknown errors; only repeated ones right after connecting mean a bad session.
  const again = reason === REASON.badSession && paired && attemptOf(state, now) < CONNECTION.badSessions;
  if (final !== undefined && !again) return stay({ kind: "stopped", note: final });
  const untrusted = reason === REASON.untrusted;
  if (!paired) return reason === REASON.timedOut ? expire() : giveUp(untrusted ? UNTRUSTED : lostLogin(reason));
  const attempt = attemptOf(state, now);
  const ms = waitAfter(attempt, random);
  const replaced = reason === REASON.replaced;
  return {
    state: {
      kind: "waiting",
      until: now + ms,
      attempt: attempt + 1,
      note: replaced
        ? REPLACED
        : untrusted
          ? UNTRUSTED
          : `The connection to WhatsApp was lost${reason === undefined ? "" : ` (${reason})`}; reconnecting.`,
    },
    effects: [
      ...(replaced ? ([{ type: "MarkGap", why: "another program used the linked device" }] as const) : []),
      { type: "WakeAfter", ms },
    ],
  };
}
