/** Runs one history: people send messages, faults happen, the faults end, and every promise must then hold. */
import { asCallId, asRunId } from "../../../protocol/gen/types.ts";
import { DAY_MS } from "../../../protocol/runtime/day.ts";
import type { Origin } from "../../src/ports/origin.ts";
import type { LogRow } from "../../src/session/machine/log.ts";
import type { TransitionName } from "../../src/session/machine/transitions.ts";
import { checkAtRest } from "./oracle.ts";
import type { Noted, Sent } from "./sent.ts";
import { IDENTITY, ROUTE, World } from "./world.ts";

export interface Scenario {
  readonly seed: number;
  readonly messages: number;
  readonly crashRate?: number;
  readonly crashAt?: number;
  readonly faults?: boolean;
  /** Longer silences, and a policy that resets after them. */
  readonly silences?: boolean;
  /** Aborts, resets, compactions, settings, process ends. */
  readonly actions?: boolean;
  /** A window so small that it fills again and again. */
  readonly window?: number;
  /** One compaction and one reset are asked for, whatever else happens. */
  readonly turnover?: boolean;
  /** Some compactions are asked for by a command, and stopped by its id soon after. */
  readonly compactsAndStops?: boolean;
  /** Notes of the gateway, some of them for the model too. */
  readonly notes?: boolean;
  /** More large messages at once than the queue takes, and a process that ends while it is full. */
  readonly flood?: boolean;
  /** The channel that answers go to is not there any more. */
  readonly channelGone?: boolean;
  /** Which calls need the owner's word. */
  readonly asks?: "some" | "all";
  /** The owner denies everything, and the model repeats itself. */
  readonly stubborn?: boolean;
  /** The owner answers no question. */
  readonly silent?: boolean;
  readonly stepsPerRun?: number;
  /** How often the owner raises the limit of steps; the session is told each time, or finds out with the next message. */
  readonly raises?: number;
  /** Machines are away for long, and most calls may wait for them. */
  readonly waits?: boolean;
  /** Some messages are for the run under way or in its place, and some of all are of a guest. */
  readonly wishes?: boolean;
  /** The only jump of the wall clock, at this moment; without it, faults may bring one. */
  readonly jump?: { readonly atMs: number; readonly byMs: number };
}
export interface Report {
  readonly borders: number;
  readonly kills: number;
  readonly modelCalls: number;
  readonly rows: readonly LogRow[];
  readonly simMs: number;
  /** How often each transition was taken. */
  readonly transitions: ReadonlyMap<TransitionName, number>;
}
export class SimulationError extends Error {
  override readonly name = "SimulationError";
}
/** Commands that ask for compactions, each with an abort of its id soon after. */
function planStoppedCompactions(
  { compactsAndStops = false }: Scenario,
  world: World,
  plan: (work: () => void) => void,
  at: (ms: number, work: () => void) => void,
  insist: <T>(work: () => Promise<T>, done: (answer: T) => void) => void,
): void {
  if (!compactsAndStops) return;
  for (let count = 1; count <= 4; count++)
    plan(() => {
      const runId = `run-compact-${count}`;
      const command = { identity: IDENTITY, messageId: `compact-${count}`, runId, text: "/compact", origin: CLIENT };
      void world.call((service) => service.send(command)).catch(() => {});
      at(world.rng.int(1, 200), () =>
        insist(
          () => world.call((service) => service.abort(runId)),
          () => {},
        ),
      );
    });
}
const BUSY_MS = 60_000;
/** Together more than `LIMITS.queueBytes`, and small enough at the end to leave no space for anything else. */
const FLOOD_CHARS: readonly number[] = [
  ...Array.from({ length: 17 }, () => 250_000),
  ...[120_000, 60_000, 30_000, 15_000, 7_500, 3_700, 1_800, 900, 450, 225, 110, 55, 25, 1],
];
/** After the faults end, every run must end within this time, without the time in which a question waits for the owner. */
const CALM_MS = 600_000;
/** Ten times the longest history: a session that loops is found early. */
const MAX_STEPS = 20_000;
/** Lets all pending microtasks run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function planRaises({ raises = 0 }: Scenario, world: World, plan: (work: () => void) => void, look: () => void): void {
  for (let index = 0; index < raises; index++)
    plan(() => {
      world.settings.moreSteps += 1;
      if (index % 2 === 0) look();
    });
}

export async function simulate(scenario: Scenario): Promise<Report> {
  const {
    seed,
    messages,
    crashRate = 0,
    crashAt,
    faults = false,
    actions = false,
    silences = false,
    window,
    turnover = false,
    notes = false,
    flood = false,
    channelGone = false,
    jump,
    asks,
    stubborn = false,
    silent = false,
    stepsPerRun,
    waits = false,
  } = scenario;
  const world = new World({
    seed,
    crashRate,
    faults,
    ...(crashAt === undefined ? {} : { crashAt }),
    ...(silences ? { idleMinutes: 1 } : {}),
    ...(window === undefined ? {} : { window }),
    channelGone,
    asks,
    stubborn,
    silent,
    ...(stepsPerRun === undefined ? {} : { stepsPerRun }),
    waits,
  });
  const busyMs = silences ? 5 * BUSY_MS : BUSY_MS;
  const { rng, time } = world;
  const sent: Sent[] = [];
  const execs: string[] = [];
  const noted: Noted[] = [];
  let waiting = 0;
  const fail = (): never => {
    throw new SimulationError(`seed ${seed}${crashAt === undefined ? "" : ` crashAt ${crashAt}`}: ${world.problems.join("\n  ")}`);
  };

  // A caller repeats until there is an answer.
  const insist = <T>(work: () => Promise<T>, done: (answer: T) => void): void => {
    waiting += 1;
    const once = (): void => {
      work().then(
        (answer) => {
          waiting -= 1;
          done(answer);
        },
        () => time.after(rng.int(50, 1_500), once),
      );
    };
    once();
  };
  const send = (message: Sent): void =>
    insist(
      () =>
        world.call((service) =>
          service.send({
            identity: IDENTITY,
            messageId: message.messageId,
            runId: message.runId,
            text: `say ${message.messageId}${"x".repeat(message.extraChars ?? 0)}`,
            origin: originOf(message),
            ...(message.routed ? { reply: ROUTE } : {}),
            ...(message.wish ? { whileBusy: message.wish } : {}),
            ...(message.quiet ? { quiet: true } : {}),
            ...(message.voice ? { attachments: [{ mimeType: "audio/ogg", data: "T2dnUw==" }] } : {}),
          }),
        ),
      (answer) => {
        const before = message.state;
        if (!answer.ok) message.state = "refused";
        else if (answer.value.status !== "started" || answer.value.runId !== asRunId(message.runId))
          world.problem(`${message.messageId} was answered ${JSON.stringify(answer.value)}`);
        else message.state = "accepted";
        if (before === "accepted" && answer.ok && answer.value.status === "started" && answer.value.duplicate !== true)
          world.problem(`${message.messageId} sent again is no duplicate`);
      },
    );
  // What is planned is still to come: the world is not at rest before.
  const at = (ms: number, work: () => void): void => {
    waiting += 1;
    time.after(ms, () => {
      waiting -= 1;
      work();
    });
  };
  const plan = (work: () => void): void => at(rng.int(0, busyMs), work);

  const processEnds = (): void => {
    const process = world.nodes.flatMap(({ background }) => background.splice(0, 1))[0];
    if (process === undefined) return;
    const { callId, processId } = process;
    const once = async (): Promise<string> => {
      const event = {
        eventId: processId,
        sessionId: processId,
        callId: asCallId(callId),
        event: "finished",
        exitCode: 0,
      } as const;
      const answer = await world.call((service) => service.execEvent("lap", event));
      if (answer === "early") throw new Error("the result of the call is still on its way");
      return answer;
    };
    insist(once, (answer) => {
      // The session gave the call up long ago, and the result that named the process came to nothing.
      if (answer === "unknown") {
        const isNamed = world.disk.everything.some((row) => row.kind === "toolResult" && row.callId === callId && row.outcome === "ok");
        if (isNamed) world.problem(`the end of ${processId} was dropped, and the result of its call named it`);
        return;
      }
      execs.push(processId);
      if (rng.chance(0.3)) insist(once, () => {});
      insist(
        () =>
          world.call((service) => service.execEvent("lap", { eventId: `${processId}-forged`, sessionId: processId, event: "finished" })),
        (second) => {
          if (second !== "unknown") world.problem(`a second end of ${processId} was ${second}`);
        },
      );
    });
  };

  const look = (): void =>
    insist(
      () => world.call((service) => service.recheckLimit()),
      () => {},
    );
  planRaises(scenario, world, plan, look);

  for (let index = 0; index < messages; index++) {
    const message: Sent = {
      messageId: `m${index}`,
      runId: `run-${index}`,
      voice: index % 5 === 3,
      routed: index % 3 === 1,
      quiet: index % 6 === 4,
      ...wishOf(scenario, index),
      state: "pending",
    };
    plan(() => {
      sent.push(message);
      send(message);
      if (rng.chance(0.2)) plan(() => send(message));
    });
  }
  if (actions) {
    for (let count = rng.int(0, 3); count > 0; count--)
      plan(() =>
        insist(
          () => world.call((service) => service.abort(rng.chance(0.5) ? undefined : `run-${rng.int(0, messages)}`)),
          () => {},
        ),
      );
    if (rng.chance(0.5)) plan(() => void world.call((service) => service.reset()).catch(() => {}));
    if (rng.chance(0.5))
      plan(() => void world.call((service) => service.compact(rng.chance(0.5) ? rng.int(1, 6) : undefined)).catch(() => {}));
    if (rng.chance(0.2)) plan(() => void world.call((service) => service.patch({ label: "sim" })).catch(() => {}));
    for (let count = rng.int(0, 2); count > 0; count--) plan(processEnds);
  }
  if (notes) {
    for (let count = rng.int(1, 4); count > 0; count--) {
      const note: Noted = { key: `note-${count}`, text: `the gateway says ${count}.`, forModel: count % 2 === 0 };
      plan(() => {
        const once = (): Promise<void> =>
          world.call((service) =>
            service.note({ identity: IDENTITY, key: note.key, text: note.text, ...(note.forModel ? { forModel: true } : {}) }),
          );
        insist(once, () => {
          noted.push(note);
          if (rng.chance(0.3)) insist(once, () => {});
        });
      });
    }
  }
  if (flood) {
    const fill = (): void => {
      for (const [index, extraChars] of FLOOD_CHARS.entries())
        at(index, () => {
          const message: Sent = { messageId: `f${index}`, runId: `run-f${index}`, extraChars, state: "pending" };
          sent.push(message);
          send(message);
        });
      at(FLOOD_CHARS.length + 1, processEnds);
    };
    // The end of a process is to find the queue full: there must be one, and its call's result must have arrived.
    const begin = (tries: number): void => {
      if (tries === 0 || world.nodes.some(({ background }) => background.length > 0)) at(1000, fill);
      else at(200, () => begin(tries - 1));
    };
    begin(100);
  }
  if (turnover) {
    plan(() => void world.call((service) => service.compact(undefined)).catch(() => {}));
    plan(() => void world.call((service) => service.reset()).catch(() => {}));
  }
  planStoppedCompactions(scenario, world, plan, at, insist);
  if (faults) {
    for (let count = rng.int(0, 5); count > 0; count--) plan(() => breakNode(world));
    for (let count = rng.int(0, 2); count > 0; count--) plan(() => void forge(world));
    if (jump === undefined && rng.chance(0.25)) plan(() => world.jump(rng.pick([DAY_MS, -DAY_MS, 7 * DAY_MS, -3_600_000])));
    if (crashRate > 0) for (let count = rng.int(0, 2); count > 0; count--) plan(() => world.kill());
  }
  planPolicies(world, scenario, plan);
  if (waits) planAbsences(world, scenario, plan);
  for (const { ms, work } of ownerActs(world, scenario, busyMs))
    at(ms, () =>
      insist(
        () => work(),
        () => {},
      ),
    );
  if (jump) time.after(jump.atMs, () => world.jump(jump.byMs));
  let deadline = Number.POSITIVE_INFINITY;
  time.after(busyMs + 1, () => {
    world.faulty = false;
    comeBack(world, scenario);
    deadline = time.now + CALM_MS + waitedMs(scenario);
  });

  const atRest = (): boolean => {
    if (deadline === Number.POSITIVE_INFINITY || waiting > 0 || world.nodes.some((node) => !node.quiet)) return false;
    const state = world.disk.load();
    return state === undefined || (state.run.phase === "idle" && state.outbox.length === 0);
  };
  /** Any run may come to the limit of its steps, and then waits for the owner, who may never answer. */
  const step = (): boolean => {
    const [asked, before] = [world.owner.waiting > 0, time.now];
    const isPlanned = time.step();
    if (asked) deadline += time.now - before;
    return isPlanned;
  };
  await settle();
  for (let steps = 0; !atRest(); steps++) {
    if (world.problems.length > 0) fail();
    if (steps > MAX_STEPS || time.now > deadline) {
      world.problem(
        `not at rest ${Math.round((time.now - deadline + CALM_MS) / 1000)} s after the faults ended (${steps} steps): ${JSON.stringify(world.disk.load()?.run)} outbox ${JSON.stringify(world.disk.load()?.outbox)}, ${waiting} wait`,
      );
      break;
    }
    if (!step()) {
      world.problem("nothing is planned, and the session is not at rest");
      break;
    }
    await settle();
  }
  // Late results and doubles of what has ended already must change nothing any more.
  const until = time.now + 30_000;
  while (time.now < until && time.step()) await settle();
  checkAtRest(world, sent, execs, noted);
  for (const problem of world.disk.wrongSteps.slice(0, 3)) world.problem(problem);
  if (world.problems.length > 0) fail();
  return {
    borders: world.borders,
    kills: world.kills,
    modelCalls: world.model.calls,
    rows: world.disk.everything,
    simMs: time.now,
    transitions: world.disk.taken,
  };
}

const GUEST = {
  kind: "channel",
  channel: "sim",
  accountId: "default",
  peer: { kind: "group", id: "g" },
  senderId: "bob",
  role: "guest",
} as const;
const CLIENT: Origin = { kind: "client", clientId: "sim" };
const originOf = ({ guest }: Sent): Origin => (guest === true ? GUEST : CLIENT);
/** Not of the quiet ones, which no run answers. */
function wishOf({ wishes = false, seed }: Scenario, index: number): Pick<Sent, "wish" | "guest"> {
  if (!wishes || index % 6 === 4) return {};
  const wish = ([undefined, "steer", "steer", "interrupt", "steer", undefined, "steer"] as const)[(seed + index) % 7];
  return { wish, guest: (seed + index) % 5 === 2 };
}

interface OwnerAct {
  readonly ms: number;
  readonly work: () => Promise<unknown>;
}
/** What the owner does to the whole session. By the seed's number, so that other histories stay as they are. */
function ownerActs(world: World, { actions, seed }: Scenario, busyMs: number): readonly OwnerAct[] {
  const hold = (held: boolean) => (): Promise<unknown> => world.call((service) => service.hold(held));
  const trust = { identity: IDENTITY, messageId: "trust", runId: "run-trust", text: "/trust" } as const;
  const origin = { kind: "client", clientId: "sim" } as const;
  if (actions !== true) return [];
  if (seed % 4 === 1)
    return [
      { ms: busyMs / 3, work: hold(true) },
      { ms: (busyMs * 2) / 3, work: hold(false) },
    ];
  return seed % 4 === 2 ? [{ ms: busyMs / 2, work: () => world.call((service) => service.send({ ...trust, origin })) }] : [];
}
/** The owner changes the policy while questions wait. */
function planPolicies(world: World, { asks }: Scenario, plan: (work: () => void) => void): void {
  if (asks !== undefined) for (let count = world.rng.int(0, 3); count > 0; count--) plan(() => world.settings.changePolicy());
}
/** The first machine is away again and again. */
function planAbsences({ nodes, rng, time }: World, scenario: Scenario, plan: (work: () => void) => void): void {
  const [first, second] = nodes;
  if (isGone(scenario)) second?.drop();
  for (let count = rng.int(1, 3); count > 0; count--)
    plan(() => {
      first?.drop();
      time.after(rng.pick([2_000, 30_000, 80_000, 150_000, 400_000]), () => first?.connect());
    });
}
function comeBack({ nodes }: World, scenario: Scenario): void {
  for (const [index, node] of nodes.entries()) if (index === 0 || !isGone(scenario)) node.connect();
}
/** The second machine does not come back before each wait for it is over. */
const isGone = ({ waits, seed }: Scenario): boolean => waits === true && seed % 3 === 0;
/** Each step of a run may wait as long as the model asks at most. */
const waitedMs = ({ waits, messages }: Scenario): number => (waits ? messages * 5 * 300_000 : 0);
function breakNode(world: World): void {
  const { rng, time } = world;
  if (!world.faulty) return;
  const node = rng.pick(world.nodes);
  if (rng.chance(0.3)) node.crash();
  else node.drop();
  time.after(rng.int(200, 25_000), () => node.connect());
}
/** A machine reports on a call that was handed to another one. */
async function forge(world: World): Promise<void> {
  const row = world.disk.everything.findLast((candidate) => candidate.kind === "assistant" && candidate.calls.length > 0);
  const call = row?.kind === "assistant" ? world.rng.pick(row.calls) : undefined;
  if (!call) return;
  const liar = call.name.startsWith("lap__") ? "old" : "lap";
  await world.toolResult(liar, { callId: asCallId(call.callId), outcome: "ok", result: "SECRET of another session" }).catch(() => {});
}
