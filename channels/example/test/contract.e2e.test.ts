/** The example channel keeps what every channel keeps. */
import { channelContract } from "../../kit/test/contract.ts";
import { exampleSide } from "./side.ts";

channelContract({
  channel: "example",
  maxTextChars: 4000,
  marked: "bold and a link (https://example.org/x)",
  // Whoever calls a webhook that is stopped is told to come again; nothing waits on the other side.
  bringsBacklog: false,
  has: ["refusals"],
  open: exampleSide,
});
