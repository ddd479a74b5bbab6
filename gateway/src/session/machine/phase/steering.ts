/** Shows the model messages that were sent to steer its run, at the next step (gateway/spec/steering.md). Each exactly once. PURE. */
import type { ReplyRoute } from "../../../ports/session.ts";
import { type Draft, take } from "../draft.ts";
import { MOST_ROUTES } from "../limits.ts";
import { enter, routeOf, takeOff } from "./entering.ts";
import type { RunBase } from "./steps.ts";

/** The border between two steps: all results are in the log, and the model is called next. */
export function withSteering(d: Draft, run: RunBase): RunBase {
  const mine = (d.at.steered ?? []).filter(({ incoming }) => incoming.steers === run.ordinal);
  if (mine.length === 0) return run;
  take(d, "steeringMessagesEnter");
  let next = run;
  for (const message of mine) {
    const { incoming } = message;
    takeOff(d, message);
    const reply = routeOf(d, incoming);
    enter(d, { ...incoming, runId: run.runId }, { steered: { runId: incoming.runId, step: run.step } });
    next = withRoute(withDirectives(next, incoming.directives), reply);
  }
  d.state.updatedAt = d.at.wall;
  return next;
}
/** A steering message's directives hold for the rest of the run. */
const withDirectives = (run: RunBase, directives: RunBase["directives"]): RunBase => ({
  ...run,
  directives: { ...run.directives, ...directives },
  ...(directives.model === undefined ? {} : { modelIndex: 0 }),
});
/** The answer goes to everyone who has asked. */
function withRoute(run: RunBase, route: ReplyRoute | undefined): RunBase {
  const { reply, alsoTo = [] } = run;
  if (route === undefined || [...(reply ? [reply] : []), ...alsoTo].some((known) => isSame(known, route))) return run;
  if (reply === undefined) return { ...run, reply: route };
  return alsoTo.length < MOST_ROUTES ? { ...run, alsoTo: [...alsoTo, route] } : run;
}
const isSame = (left: ReplyRoute, right: ReplyRoute): boolean =>
  left.channel === right.channel &&
  left.accountId === right.accountId &&
  left.peer.kind === right.peer.kind &&
  left.peer.id === right.peer.id;
