/** The part of domain events that is loaded with the first event. */
export { EventLog } from "./d1-store.ts";
export { Decisions } from "./decisions.ts";
export { EventKeeper } from "./keeper.ts";
export { EventStarts } from "./starts.ts";
