/** The simulator's output: to the terminal above the prompt, and with times to its log file. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { Interface } from "node:readline";

const LINE_CHARS = 4_000;

export class Journal {
  readonly file: string;
  /** The prompt to redraw below new output. */
  prompt: Interface | undefined;
  readonly #shown: string[] = [];
  #cursor = 0;
  #watchers: (() => void)[] = [];
  constructor(file: string) {
    this.file = file;
  }

  note(kind: string, text: string): void {
    for (const line of text.split("\n"))
      appendFileSync(this.file, `${new Date().toISOString()} ${kind.padEnd(9)} ${line.slice(0, LINE_CHARS)}\n`);
  }
  /** Prints the simulator's own text. */
  say(text: string): void {
    this.note("sim", text);
    this.#write(text);
  }
  /** Prints a message that a person sees on a platform. */
  show(where: string, text: string): void {
    this.note("shown", `${where}: ${text}`);
    this.#shown.push(`${where}: ${text}`);
    const [first = "", ...rest] = text.split("\n");
    this.#write([`  ${where} ◂ ${first}`, ...rest.map((line) => `      ${line}`)].join("\n"));
    for (const wake of this.#watchers.splice(0)) wake();
  }
  #write(text: string): void {
    if (this.prompt?.terminal === true) {
      process.stdout.write(`\r\u001b[K${text}\n`);
      this.prompt.prompt(true);
    } else process.stdout.write(`${text}\n`);
  }

  /** Resolves when a person sees this text; each line satisfies one wait. */
  async seen(text: string, ms: number): Promise<void> {
    const deadline = Date.now() + ms;
    for (;;) {
      const at = this.#shown.findIndex((line, index) => index >= this.#cursor && line.includes(text));
      if (at >= 0) {
        this.#cursor = at + 1;
        return;
      }
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`no person saw "${text}" within ${ms / 1000} s; see ${this.file}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#watchers.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }
  tail(file: string, lines: number): string {
    return existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").slice(-lines).join("\n") : "(nothing yet)";
  }
}
