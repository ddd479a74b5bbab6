/** What runs transfers. A part of its own, which is loaded with the first one. */
export { AgentTransfers } from "./agent-transfers.ts";
export { transferMethods } from "./methods.ts";
export { NewRequests } from "./new-requests.ts";
export { TransferRunner } from "./runner.ts";
export { TransferStore } from "./store.ts";
