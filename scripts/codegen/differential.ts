/**
 * Compare TypeScript and Rust on randomly changed examples: serde must read every value that the validators accept and
 * write it again unchanged (unknown fields aside), and the validators must refuse every value that serde refuses. serde
 * does not check bounds.
 *   cargo build -p gsv-protocol --example verdict --features differential
 *   node scripts/codegen/differential.ts <path of the built example> [runs, 20000] [seed, random]
 */
import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { bentExamples } from "../../protocol/test/bend.ts";
import { generatedAccepts } from "../../protocol/test/support.ts";

const [binary, runs = "20000", seedText] = process.argv.slice(2);
if (binary === undefined) {
  console.error("usage: node scripts/codegen/differential.ts <path of the verdict example> [runs] [seed]");
  process.exit(2);
}
const seed = seedText === undefined ? Date.now() % 2 ** 31 : Number(seedText);
/** Strict readers refuse broken surrogates and numbers beyond a double; our own writer never sends them. */
const isPlain = (text: string): boolean => text.isWellFormed() && !/\\ud[89a-f]/i.test(text);

const cases = fc
  .sample(bentExamples, { numRuns: Number(runs), seed })
  .map(({ type, bent }) => ({ type, text: JSON.stringify(bent) }))
  .filter(({ text }) => text !== undefined && isPlain(text));
const lines = cases.map(({ type, text }) => `${type} ${text}`);
const answers = spawnSync(binary, [], { input: `${lines.join("\n")}\n`, encoding: "utf8", maxBuffer: 2 ** 30 })
  .stdout.trimEnd()
  .split("\n");
if (answers.length !== lines.length) throw new Error(`${lines.length} questions, ${answers.length} answers`);

/** Whether everything in `part` is in `whole`: what a reader that ignores unknown fields may keep. */
function within(part: unknown, whole: unknown): boolean {
  if (typeof part !== "object" || part === null || typeof whole !== "object" || whole === null)
    return Object.is(part, whole) || part === whole;
  if (Array.isArray(part) !== Array.isArray(whole)) return false;
  const keys = Object.keys(part);
  if (Array.isArray(part) && keys.length !== Object.keys(whole).length) return false;
  return keys.every((key) => Object.hasOwn(whole, key) && within(Reflect.get(part, key), Reflect.get(whole, key)));
}

let accepted = 0;
let wrong = 0;
for (const [index, line] of lines.entries()) {
  const space = line.indexOf(" ");
  const [type, text] = [line.slice(0, space), line.slice(space + 1)];
  const value: unknown = JSON.parse(text);
  const ours = generatedAccepts(type, value);
  const theirs = answers[index] ?? "no";
  if (ours) accepted++;
  let problem: string | undefined;
  if (ours && theirs === "no") problem = "the validator accepts, serde refuses";
  if (ours && theirs !== "no") {
    const written: unknown = JSON.parse(theirs.slice(3));
    if (!within(written, value)) problem = `serde wrote something else: ${theirs.slice(3)}`;
    else if (!generatedAccepts(type, written)) problem = `serde wrote what the validator refuses: ${theirs.slice(3)}`;
  }
  if (problem === undefined) continue;
  wrong++;
  if (wrong <= 20) console.error(`${problem}\n  ${line}`);
}
console.log(`seed ${seed}: ${lines.length} cases, ${accepted} accepted, ${wrong} disagreements`);
process.exitCode = wrong === 0 ? 0 : 1;
