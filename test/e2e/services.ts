/** A machine with the service manager that tests play (test/fakes/services). */
import { copyFileSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Machine, ROOT } from "./support.ts";

export interface ServiceEnvironment extends Readonly<Record<string, string>> {
  readonly PATH: string;
}

/** The environment of its commands: its folder is the person's home. */
export function withServices(machine: Machine): ServiceEnvironment {
  const folder = join(machine.folder, "fake");
  mkdirSync(folder);
  for (const name of ["systemctl", "loginctl", "lib"]) copyFileSync(join(ROOT, "test", "fakes", "services", name), join(folder, name));
  return { HOME: machine.folder, FAKE: folder, PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}` };
}
