import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { userSegment } from "../core/path-segment.ts";

/** Attachments of sessions that are nowhere but in memory: in a new folder of this process alone, and as long as they. */
export class ScratchFolder {
  #folder: string | null = null;

  /** A user's folder cannot be taken for nobody's: no encoded name begins with a dot. */
  attachments(userId: string | null, agentId: string, sessionId: string): string {
    // Made by the first attachment: most sessions have none.
    this.#folder ??= join(tmpdir(), `skein-attachments-${randomUUID()}`);
    return join(this.#folder, userId === null ? ".nobody" : userSegment(userId), agentId, sessionId);
  }

  async close(): Promise<void> {
    const folder = this.#folder;
    this.#folder = null;
    if (folder !== null) await rm(folder, { recursive: true, force: true });
  }
}
