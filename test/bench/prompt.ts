/** The cost of a large prompt: 50 skills and every file of the workspace full. */
import { median } from "./process.ts";
import type { System } from "./system.ts";

export interface PromptCost {
  /** Asked again when nothing changed. */
  readonly againMs: number;
  /** Asked again after a file was written: read, assembled and counted again. */
  readonly changedMs: number;
  readonly bytes: number;
}
export const SKILLED_SESSION = "agent:bench:cli:dm:main";
const SKILLS = 50;
const FILES = ["SOUL.md", "IDENTITY.md", "USER.md", "AGENTS.md", "MEMORY.md", "TOOLS.md"];
const FILE_BYTES = 60_000;

export async function largePrompt(system: System, samples: number): Promise<PromptCost> {
  const client = await system.open("bench-prompt");
  const ask = async (method: string, params: unknown): Promise<Record<string, unknown>> => {
    const frame = await client.call(method, params);
    if (frame.ok !== true) throw new Error(`${method}: ${frame.error?.message ?? "failed"}`);
    return frame.payload ?? {};
  };
  await ask("agents.create", { agentId: "bench", bootstrap: false });
  const line = "- Something that is worth knowing about a person or a thing.\n";
  const text = line.repeat(Math.floor(FILE_BYTES / line.length));
  for (const path of FILES) await ask("workspace.write", { agentId: "bench", path, content: `# ${path}\n${text}` });
  for (let index = 0; index < SKILLS; index++) {
    const content = `---\nname: skill-${index}\ndescription: Does the thing number ${index}. Use it when number ${index} is asked for, or what is near it.\n---\n# Steps\n${line.repeat(20)}`;
    await ask("skills.install", { agentId: "bench", name: `skill-${index}`, files: [{ path: "SKILL.md", content }] });
  }
  const prompt = async (): Promise<number> => {
    const payload = await ask("session.prompt", { sessionKey: SKILLED_SESSION });
    return JSON.stringify(payload).length;
  };
  const bytes = await prompt();
  const timed = async (before: (index: number) => Promise<unknown>): Promise<number> => {
    const times: number[] = [];
    for (let index = 0; index < samples; index++) {
      await before(index);
      const from = performance.now();
      await prompt();
      times.push(performance.now() - from);
    }
    return median(times);
  };
  const againMs = await timed(() => Promise.resolve());
  const changedMs = await timed((index) =>
    ask("workspace.write", { agentId: "bench", path: "HEARTBEAT.md", content: `- look at ${index}\n` }),
  );
  client.close();
  return { againMs, changedMs, bytes };
}
