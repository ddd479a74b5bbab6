/** The simulation's store has the same contract as the real one (test/session/store.test.ts). */
import { describe, test } from "node:test";
import { storeCases } from "../session/store-contract.ts";
import { MemoryStore } from "./memory-store.ts";

describe("the store in memory", () => {
  for (const { name, run } of storeCases) test(name, () => run(new MemoryStore()));
});
