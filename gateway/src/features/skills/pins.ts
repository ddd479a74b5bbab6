/** Compares a skill with its approval. PURE. */
import type { SeenSkill, SkillPin } from "../../ports/skills.ts";
import type { Approval } from "./eligibility.ts";
import type { SkillFolder } from "../../storage/skills/folder.ts";

export const pinOf = <P extends SkillPin>(folder: Pick<SkillFolder, "scope" | "name">, pins: readonly P[]): P | undefined =>
  pins.find((pin) => pin.scope === folder.scope && pin.name === folder.name);

export function approvalOf(folder: Pick<SkillFolder, "scope" | "name" | "sha256">, pins: readonly SkillPin[]): Approval {
  if (folder.scope === "builtin") return "approved";
  const pin = pinOf(folder, pins);
  if (pin === undefined) return "unseen";
  return folder.sha256 !== undefined && (folder.sha256 === pin.sha256 || folder.sha256 === pin.next) ? "approved" : "changed";
}

/** The skills to report to the gateway: those without a pin, whose pins may be newer, and announced changes that have arrived. */
export function unreported(folders: readonly SkillFolder[], pins: readonly SkillPin[]): readonly SeenSkill[] {
  return folders.flatMap((folder): readonly SeenSkill[] => {
    const { scope, name, sha256 } = folder;
    if (scope === "builtin" || sha256 === undefined) return [];
    const pin = pinOf(folder, pins);
    return pin === undefined || pin.next === sha256 ? [{ scope, name, sha256 }] : [];
  });
}
