/** Runs a program to its end and keeps its output. Never uses a shell, so arguments need no quoting. */
import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Receives all output too. */
  readonly logFile?: string;
  /** The program writes to the terminal itself; nothing is kept. */
  readonly inherit?: boolean;
}
export interface RunResult {
  /** Exit status; 127 when the program could not be started, 1 when a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  /** stdout and stderr in the order of arrival. */
  readonly output: string;
  readonly ms: number;
}

export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const started = performance.now();
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: options.inherit === true ? "inherit" : ["ignore", "pipe", "pipe"],
    });
    const log = options.logFile === undefined ? undefined : createWriteStream(options.logFile, { flags: "a" });
    let stdout = "";
    let output = "";
    const take = (text: string): void => {
      output += text;
      log?.write(text);
    };
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
      take(text);
    });
    child.stderr?.setEncoding("utf8").on("data", take);
    const done = (code: number): void => {
      log?.end();
      resolve({ code, stdout, output, ms: performance.now() - started });
    };
    child.on("error", (error) => {
      take(`${command} could not be started: ${error.message}\n`);
      done(127);
    });
    child.on("close", (code, signal) => {
      if (signal !== null) take(`${command} was ended by ${signal}\n`);
      done(code ?? 1);
    });
  });
}
