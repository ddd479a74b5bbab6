/** The tests that every channel must pass, run on the example. */
import { channelContract } from "../../kit/test/contract.ts";
import { exampleSide } from "./side.ts";

channelContract({
  channel: "example",
  maxTextChars: 4000,
  marked: "bold and a link (https://example.org/x)",
  // A stopped webhook answers 503 and stores nothing, so the caller retries.
  bringsBacklog: false,
  has: ["refusals"],
  open: exampleSide,
});
