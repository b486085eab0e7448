import { dirname } from "node:path";
import { findPackages } from "../channels/chat/load-packages.ts";
import type { LoadedConfig } from "../config/load.ts";
import { platformOf } from "../config/sections/chat-adapters.ts";
import { SkeinError } from "../core/errors.ts";

type Loaded = Pick<LoadedConfig, "config" | "file" | "root">;

/** A chat channel with its packages, or with the reason why they cannot be used. */
export interface ChatPackagesReport {
  readonly name: string;
  readonly platform: string;
  readonly packages: readonly { readonly name: string; readonly version: string }[];
  readonly error: SkeinError | null;
}

/** Returns the folders that are searched for the packages of channels. */
export function packageFoldersOf({ file, root }: Pick<LoadedConfig, "file" | "root">): readonly string[] {
  return [...(file === null ? [] : [dirname(file)]), root];
}

/** Looks for the packages of each chat channel without loading their code. */
export function checkChatPackages(loaded: Loaded): ChatPackagesReport[] {
  return Object.entries(loaded.config.channels).flatMap(([name, { type, adapter }]): ChatPackagesReport[] => {
    if (type !== "chat-sdk" || adapter === null) return [];
    const platform = platformOf(adapter);
    const about = { name, platform: platform.title };
    try {
      const found = findPackages(name, platform, packageFoldersOf(loaded));
      const packages = found.map((each) => ({ name: each.name, version: each.version }));
      return [{ ...about, packages, error: null }];
    } catch (error) {
      if (error instanceof SkeinError) return [{ ...about, packages: [], error }];
      throw error;
    }
  });
}

/** Logs a warning for each chat channel whose packages cannot be used. */
export function warnAboutChatPackages(loaded: Loaded, log: (level: "warn", text: string) => void): void {
  for (const { error } of checkChatPackages(loaded)) if (error !== null) log("warn", error.message);
}
