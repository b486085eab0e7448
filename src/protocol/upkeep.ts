import type { Static } from "typebox";
import Type from "typebox";

/** What looking after a folder answers. */

const strict = { additionalProperties: false };

/** `backup`. */
export const BackupSchema = Type.Object(
  { folder: Type.String(), files: Type.Integer(), bytes: Type.Integer() },
  strict,
);
export type BackupPayload = Static<typeof BackupSchema>;
