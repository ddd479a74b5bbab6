/** The example's `Side` for the contract suite: a program that retries webhooks and receives callbacks. */
import { join } from "node:path";
import { bundle } from "../../../gateway/test/support/raw-workerd.ts";
import { Program, signed } from "../../fakes/example/program.ts";
import type { Person, Side } from "../../kit/test/contract.ts";
import { ROOT, Stage, type StagedWorker } from "../../kit/test/stage.ts";

export const SECRET = "example-secret-of-thirty-letters";
export const EXAMPLE = { className: "ExampleAccount", date: "2026-11-01", flags: [] } as const;
export const exampleWorker = async (): Promise<StagedWorker> => ({
  ...EXAMPLE,
  script: await bundle(join(ROOT, "channels", "example", "src", "worker.ts")),
});

export async function exampleSide(): Promise<Side> {
  const stage = await new Stage().open(await exampleWorker());
  const program = await new Program(SECRET).listen();
  /** The answers to the next callbacks for these people are lost. */
  const lost = new Set<string>();
  const refused = new Set<string>();
  program.onCallback = ({ to }) => (refused.has(to) ? "gone" : lost.delete(to) ? "lose" : "take");
  let people = 0;
  const post = async (message: object): Promise<void> => {
    const body = JSON.stringify(message);
    for (const end = Date.now() + 10_000; ; ) {
      const response = await stage.fetch("/default", { method: "POST", body, headers: signed(SECRET, body) });
      const text = await response.text();
      if (response.status === 200) return;
      if (response.status !== 503 || Date.now() > end) throw new Error(text);
    }
  };
  return {
    stage,
    async start() {
      await stage.call("start", { accountId: "default", config: { secret: SECRET, callbackUrl: program.url } });
    },
    async person(): Promise<Person> {
      const from = `person-${++people}@example`;
      const own = people;
      let said = 0;
      return {
        peer: { kind: "dm", id: from },
        async say(text) {
          const id = `w${own}-${++said}`;
          await post({ id, from, text, name: "Someone Particular" });
          return id;
        },
        again: (id, text) => post({ id, from, text }),
        // The webhook's answer acknowledged it.
        told: () => Promise.resolve(),
        shown: () => program.shown.filter(({ to }) => to === from),
        loseAnswer: () => void lost.add(from),
        refuse: () => void refused.add(from),
      };
    },
    secrets: () => [SECRET, "Someone Particular", "@example"],
    async close() {
      await stage.end();
      await program.close();
    },
  };
}
