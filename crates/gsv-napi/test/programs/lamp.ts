/**
 * A program that is a node, like the lamp in the README, for tests that need a process of its own. `argv[2]`: the options as JSON. It says on
 * stdout what happens, and closes the node at the end of stdin. It ends when nothing keeps it running.
 */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { Node, type NodeOptions } from "@gsv/node";

const options = JSON.parse(process.argv[2] ?? "{}") as NodeOptions;
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const starts = (name: string): void => appendFileSync(join(options.workspace, "starts"), `${name}\n`);
const once = (name: string): Promise<never> => {
  starts(name);
  return new Promise(() => undefined);
};

const node = new Node(options);
const inputSchema = { type: "object" } as const;
node
  .tool({ name: "Once", description: "Starts, and never ends.", inputSchema, run: () => once("Once") })
  .tool({
    name: "Again",
    description: "Starts, and never ends the first time.",
    inputSchema,
    idempotent: true,
    run: () => {
      if (process.env["LAMP_ENDS"] !== "1") return once("Again");
      starts("Again");
      return "done";
    },
  })
  .tool({
    name: "Block",
    description: "Keeps the whole program busy.",
    inputSchema,
    run: () => {
      starts("Block");
      for (;;);
    },
  })
  .tool({
    name: "Closing",
    description: "Says when its signal fires.",
    inputSchema,
    run: (_args, { signal }) => {
      starts("Closing");
      return new Promise((done) =>
        signal.addEventListener("abort", () => {
          say(`aborted ${(signal.reason as { reason: string }).reason}`);
          done("ended");
        }),
      );
    },
  });
for (const event of ["connected", "closed"] as const) node.on(event, () => say(event));
if (process.env["LAMP_LISTENS"] !== "0") node.on("error", ({ reason }) => say(`error ${reason}`));
process.stdin.resume().on("end", () => void node.close());
await node.connect();
// The pipe of stdin would keep the program running; only the node may.
if (process.env["LAMP_UNREF"] === "1") (process.stdin as unknown as { unref(): void }).unref();
