/**
 * What to do about the connection to Discord's gateway, as a machine: states and events in, the next state and effects out. Pure; the
 * clock and chance are arguments. It never tries again by itself what only a person can mend (a wrong token, a missing permission),
 * and it never forgets a session that Discord may still know.
 *
 *   idle -> connecting -> connected -> waiting -> connecting ...        stopped: until it is started anew
 */

export type Connection =
  | { readonly at: "idle" }
  | { readonly at: "connecting"; readonly since: number; readonly attempt: number }
  | { readonly at: "connected"; readonly since: number; readonly attempt: number }
  | { readonly at: "waiting"; readonly until: number; readonly attempt: number; readonly why: string; readonly offline: boolean }
  | { readonly at: "stopped"; readonly why: string };

export type ConnectionEvent =
  /** It should be there: at the start, at each alarm, when a wait is over. `heardAt`: when the gateway last said anything. `asked`: by a person, who may have mended what stopped it. */
  | { readonly type: "wanted"; readonly heardAt: number; readonly asked: boolean }
  | { readonly type: "opened" }
  | { readonly type: "closed"; readonly code: number; readonly invalidSession: boolean }
  /** The gateway could not be asked for, or not be reached. */
  | { readonly type: "failed"; readonly error: string; readonly status?: number; readonly waitMs?: number }
  /** An event could not be kept: its place in the stream has to be read again. */
  | { readonly type: "stuck"; readonly error: string }
  | { readonly type: "refused"; readonly why: string }
  | { readonly type: "unwanted" };

export type ConnectionEffect =
  | { readonly do: "connect" }
  /** Close the socket, if there is one, and hear nothing more from it. */
  | { readonly do: "retire"; readonly code: number }
  | { readonly do: "forget-session" }
  | { readonly do: "wake"; readonly afterMs: number }
  /** The state that others see has changed. */
  | { readonly do: "tell" };

export const CONNECTION = {
  retryMinMs: 500,
  retryMaxMs: 300_000,
  /** A connection that lived this long was a good one: the next attempt is the first again. */
  goodMs: 30_000,
  /** The library itself gives up sooner; these are for when its timers are lost. */
  connectingMs: 90_000,
  silentMs: 150_000,
  /** Discord keeps the session when it is closed with this, and ends it with 1000. */
  keepSession: 4200,
  endSession: 1000,
} as const;

/** Only a person can mend these (Discord, "Gateway Close Event Codes"). */
const FATAL: ReadonlyMap<number, string> = new Map([
  [
    4004,
    "Discord does not accept the bot's token. Make a new one at https://discord.com/developers/applications (Bot, Reset Token), put it in the configuration, and start the channel.",
  ],
  [4010, "Discord refuses the shard that was asked for. Start the channel again; if it stays, this program is too old for Discord."],
  [4011, "The bot is in too many servers for one connection. Remove it from some, and start the channel."],
  [4012, "Discord no longer speaks this version of its protocol. Install a newer version of this program."],
  [4013, "Discord does not know the intents that were asked for. Install a newer version of this program."],
  [
    4014,
    "The bot may not read messages. Switch on Message Content Intent at https://discord.com/developers/applications (Bot, Privileged Gateway Intents), and start the channel.",
  ],
]);
/** Discord has given up the session: the next connection begins a new one. */
const SESSION_ENDED: ReadonlySet<number> = new Set([4003, 4007, 4009]);

export type Step = readonly [next: Connection, effects: readonly ConnectionEffect[]];

/** `random` in [0, 1). */
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
      // Closed like this, the session is over for Discord too.
      return [{ at: "idle" }, [{ do: "retire", code: CONNECTION.endSession }, { do: "forget-session" }, { do: "tell" }]];
  }
}

function wanted(state: Connection, heardAt: number, asked: boolean, now: number, random: number): Step {
  switch (state.at) {
    case "idle":
      return [{ at: "connecting", since: now, attempt: 1 }, [{ do: "connect" }]];
    case "waiting":
      // A person may know that the way is free again; the pace and the grant of Discord nobody changes.
      // A timer may come a moment too soon.
      if (now < state.until && !(asked && state.offline)) return [state, [{ do: "wake", afterMs: state.until - now }]];
      return [{ at: "connecting", since: now, attempt: state.attempt }, [{ do: "connect" }]];
    case "connecting":
      if (now - state.since < CONNECTION.connectingMs) return [state, []];
      return wait(state.attempt + 1, "Discord's gateway did not answer", true, now, random, [
        { do: "retire", code: CONNECTION.keepSession },
      ]);
    case "connected":
      if (now - Math.max(heardAt, state.since) < CONNECTION.silentMs) return [state, []];
      return wait(1, "Discord's gateway fell silent", false, now, random, [{ do: "retire", code: CONNECTION.keepSession }]);
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
  // A socket that never opened closes with 1006: the way there is broken.
  const offline = state.at === "connecting" && code === 1006;
  return wait(attemptAfter(state, now), `the connection closed (${code})`, offline, now, random, [{ do: "retire", code }, ...forget]);
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
    // A connection that opens and falls at once must not be tried as fast for ever.
    { at: "waiting", until: now + afterMs, attempt: attempt + 1, why, offline },
    [...effects, { do: "wake", afterMs }, { do: "tell" }],
  ];
}
/** 0.5, 1, 2 ... s, at most five minutes, 25 % up or down. */
export function retryWaitMs(attempt: number, random: number): number {
  const wait = Math.min(CONNECTION.retryMaxMs, CONNECTION.retryMinMs * 2 ** Math.min(20, Math.max(0, attempt - 1)));
  return Math.round(wait * (0.75 + random / 2));
}

// ---------------------------------------------------------------- the budget of new sessions

/** What Discord grants a bot in 24 hours (GET /gateway/bot, `session_start_limit`), as last heard and counted on from there. */
export interface IdentifyBudget {
  readonly total: number;
  readonly remaining: number;
  /** Epoch ms. */
  readonly resetAt: number;
  readonly gapMs: number;
}
/** Discord resets the token of a bot that uses them all: the last ones are for whoever mends it. */
export const IDENTIFIES_KEPT = 50;
/** 0: a new session may be begun now; else how long to wait. */
export function identifyWaitMs(budget: IdentifyBudget, lastAt: number, now: number): number {
  // A grant smaller than the reserve is kept half.
  const kept = Math.min(IDENTIFIES_KEPT, Math.floor(budget.total / 2));
  if (budget.remaining <= kept && now < budget.resetAt) return budget.resetAt - now;
  return Math.max(0, lastAt + budget.gapMs - now);
}
export const isSpent = (budget: IdentifyBudget, now: number): boolean =>
  budget.remaining <= Math.min(IDENTIFIES_KEPT, Math.floor(budget.total / 2)) && now < budget.resetAt;
