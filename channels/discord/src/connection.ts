/**
 * PURE. The state machine of the connection to Discord's gateway: state and event in, next state and effects out. Time and random
 * numbers are arguments. It never retries what only a person can fix (a wrong token, a missing permission), and never drops a session
 * that Discord may still know.
 *
 *   idle -> connecting -> connected -> waiting -> connecting ...        stopped: until a person starts it
 */

export type Connection =
  | { readonly at: "idle" }
  | { readonly at: "connecting"; readonly since: number; readonly attempt: number }
  | { readonly at: "connected"; readonly since: number; readonly attempt: number }
  | { readonly at: "waiting"; readonly until: number; readonly attempt: number; readonly why: string; readonly offline: boolean }
  | { readonly at: "stopped"; readonly why: string };

export type ConnectionEvent =
  /** A connection is wanted: at a start, at each alarm, after a wait. `heardAt`: the gateway's last sign of life. `asked`: by a person, who may have fixed what stopped it. */
  | { readonly type: "wanted"; readonly heardAt: number; readonly asked: boolean }
  | { readonly type: "opened" }
  | { readonly type: "closed"; readonly code: number; readonly invalidSession: boolean }
  /** The gateway's address or the gateway itself could not be reached. */
  | { readonly type: "failed"; readonly error: string; readonly status?: number; readonly waitMs?: number }
  /** An event could not be stored: the stream must be read again from its position. */
  | { readonly type: "stuck"; readonly error: string }
  | { readonly type: "refused"; readonly why: string }
  | { readonly type: "unwanted" };

export type ConnectionEffect =
  | { readonly do: "connect" }
  /** Close the socket, if any, and ignore its events. */
  | { readonly do: "retire"; readonly code: number }
  | { readonly do: "forget-session" }
  | { readonly do: "wake"; readonly afterMs: number }
  /** The visible state changed. */
  | { readonly do: "tell" };

export const CONNECTION = {
  retryMinMs: 500,
  retryMaxMs: 300_000,
  /** A connection that lasted this long resets the backoff. */
  goodMs: 30_000,
  /** The wait before a reconnect that Discord asked for, when the connection was opened less than this ago. */
  askedAgainMs: 2_000,
  /** The library itself times out earlier; these apply when its timers are lost. */
  connectingMs: 90_000,
  silentMs: 120_000,
  /** Discord keeps the session after this close code and ends it after 1000. */
  keepSession: 4200,
  endSession: 1000,
} as const;

/** Only a person can fix these (Discord, "Gateway Close Event Codes"). */
const FATAL: ReadonlyMap<number, string> = new Map([
  [
    4004,
    "Discord does not accept the bot's token. Make a new one at https://discord.com/developers/applications (Bot, Reset Token), put it into the configuration, then start the channel.",
  ],
  [4010, "Discord refused the requested shard. Start the channel again; if that fails, install a newer version of this program."],
  [4011, "The bot is in too many servers for one connection. Remove it from some, then start the channel."],
  [4012, "Discord no longer supports this version of its protocol. Install a newer version of this program."],
  [4013, "Discord does not know the requested intents. Install a newer version of this program."],
  [
    4014,
    "The bot may not read messages. Turn on Message Content Intent at https://discord.com/developers/applications (Bot, Privileged Gateway Intents), then start the channel.",
  ],
]);
/**
 * Discord asked for a reconnect: op 7 and a resumable op 9, for which the library closes with 4200, or a close with 1001 (a server is
 * restarted). No failure, so it does not back off. The library closes with 4200 also after missed acknowledgements, but those take longer
 * than a good connection.
 */
const ASKED: ReadonlySet<number> = new Set([4200, 1001]);
/** Discord ended the session: the next connection starts a new one. */
const SESSION_ENDED: ReadonlySet<number> = new Set([4003, 4007, 4009]);

export type Step = readonly [next: Connection, effects: readonly ConnectionEffect[]];

/** `random` is in [0, 1). */
export function stepConnection(state: Connection, event: ConnectionEvent, now: number, random: number): Step {
  switch (event.type) {
    case "wanted":
      return wanted(state, event.heardAt, event.asked, now, random);
    case "opened":
      if (state.at !== "connecting") return [state, []];
      return [{ at: "connected", since: now, attempt: state.attempt }, [{ do: "tell" }]];
    case "closed":
      return closed(state, event.code, event.invalidSession, now, random);
    case "failed":
      return failed(state, event, now, random);
    case "stuck": {
      if (state.at === "idle" || state.at === "stopped") return [state, []];
      return wait(attemptAfter(state, now) + 2, `a message could not be kept: ${event.error}`, false, now, random, [
        { do: "retire", code: CONNECTION.keepSession },
      ]);
    }
    case "refused":
      return [{ at: "stopped", why: event.why }, [{ do: "retire", code: CONNECTION.endSession }, { do: "tell" }]];
    case "unwanted":
      if (state.at === "idle") return [state, []];
      // This close ends the session for Discord, too.
      return [{ at: "idle" }, [{ do: "retire", code: CONNECTION.endSession }, { do: "forget-session" }, { do: "tell" }]];
  }
}

function wanted(state: Connection, heardAt: number, asked: boolean, now: number, random: number): Step {
  switch (state.at) {
    case "idle":
      return [{ at: "connecting", since: now, attempt: 1 }, [{ do: "connect" }]];
    case "waiting":
      // A person may skip a backoff, but not Discord's own rate limits.
      // A timer may fire slightly early.
      if (now < state.until && !(asked && state.offline)) return [state, [{ do: "wake", afterMs: state.until - now }]];
      return [{ at: "connecting", since: now, attempt: state.attempt }, [{ do: "connect" }]];
    case "connecting":
      if (now - state.since < CONNECTION.connectingMs) return [state, []];
      return wait(state.attempt + 1, "Discord's gateway did not answer", true, now, random, [
        { do: "retire", code: CONNECTION.keepSession },
      ]);
    case "connected":
      if (now - Math.max(heardAt, state.since) < CONNECTION.silentMs) return [state, []];
      return wait(1, "Discord's gateway stopped answering", false, now, random, [{ do: "retire", code: CONNECTION.keepSession }]);
    case "stopped":
      return asked ? [{ at: "connecting", since: now, attempt: 1 }, [{ do: "connect" }]] : [state, []];
  }
}
function closed(state: Connection, code: number, invalidSession: boolean, now: number, random: number): Step {
  if (state.at !== "connecting" && state.at !== "connected") return [state, []];
  const fatal = FATAL.get(code);
  if (fatal !== undefined)
    return [
      { at: "stopped", why: fatal },
      [{ do: "retire", code }, ...(code === 4004 ? [{ do: "forget-session" } as const] : []), { do: "tell" }],
    ];
  const forget: readonly ConnectionEffect[] = invalidSession || SESSION_ENDED.has(code) ? [{ do: "forget-session" }] : [];
  if (state.at === "connected" && ASKED.has(code) && !invalidSession) return askedFor(state, code, now, random);
  // A socket that never opened closes with 1006: the network path is broken.
  const offline = state.at === "connecting" && code === 1006;
  return wait(attemptAfter(state, now), `the connection closed (${code})`, offline, now, random, [{ do: "retire", code }, ...forget]);
}
function askedFor(state: Extract<Connection, { at: "connected" }>, code: number, now: number, random: number): Step {
  const afterMs = now - state.since < CONNECTION.askedAgainMs ? CONNECTION.askedAgainMs : retryWaitMs(1, random);
  const attempt = now - state.since >= CONNECTION.goodMs ? 1 : state.attempt;
  return [
    { at: "waiting", until: now + afterMs, attempt, why: "Discord asked for a new connection", offline: false },
    [{ do: "retire", code }, { do: "wake", afterMs }, { do: "tell" }],
  ];
}
function failed(state: Connection, event: Extract<ConnectionEvent, { type: "failed" }>, now: number, random: number): Step {
  if (state.at !== "connecting") return [state, []];
  const retire = { do: "retire", code: CONNECTION.keepSession } as const;
  if (event.status === 401) return [{ at: "stopped", why: FATAL.get(4004) ?? "" }, [retire, { do: "forget-session" }, { do: "tell" }]];
  if (event.waitMs !== undefined) {
    const until = now + event.waitMs;
    return [
      { at: "waiting", until, attempt: state.attempt, why: event.error, offline: false },
      [retire, { do: "wake", afterMs: event.waitMs }, { do: "tell" }],
    ];
  }
  return wait(state.attempt + 1, event.error, true, now, random, [retire]);
}

function attemptAfter(state: Connection, now: number): number {
  if (state.at === "connected") return now - state.since >= CONNECTION.goodMs ? 1 : state.attempt;
  return "attempt" in state ? state.attempt + 1 : 1;
}
function wait(attempt: number, why: string, offline: boolean, now: number, random: number, effects: readonly ConnectionEffect[]): Step {
  const afterMs = retryWaitMs(attempt, random);
  return [
    // A connection that opens and breaks at once must back off, too.
    { at: "waiting", until: now + afterMs, attempt: attempt + 1, why, offline },
    [...effects, { do: "wake", afterMs }, { do: "tell" }],
  ];
}
/** Backoff in ms: 0.5, 1, 2 ... s, at most five minutes, plus or minus 25 %. */
export function retryWaitMs(attempt: number, random: number): number {
  const wait = Math.min(CONNECTION.retryMaxMs, CONNECTION.retryMinMs * 2 ** Math.min(20, Math.max(0, attempt - 1)));
  return Math.round(wait * (0.75 + random / 2));
}

// ---------------------------------------------------------------- the budget of new sessions

/** New sessions that Discord allows a bot in 24 hours (GET /gateway/bot, `session_start_limit`): the last answer, counted down locally. */
export interface IdentifyBudget {
  readonly total: number;
  readonly remaining: number;
  /** Epoch ms. */
  readonly resetAt: number;
  readonly gapMs: number;
}
/** Discord resets the token of a bot that uses up its sessions, so some are reserved for a person's attempts. */
export const IDENTIFIES_KEPT = 50;
/** Ms until a new session may start; 0: now. */
export function identifyWaitMs(budget: IdentifyBudget, lastAt: number, now: number): number {
  return isSpent(budget, now) ? budget.resetAt - now : Math.max(0, lastAt + budget.gapMs - now);
}
/** Whether only the reserve is left. Half of an allowance is reserved when it is smaller than the usual reserve. */
export const isSpent = (budget: IdentifyBudget, now: number): boolean =>
  budget.remaining <= Math.min(IDENTIFIES_KEPT, Math.floor(budget.total / 2)) && now < budget.resetAt;
