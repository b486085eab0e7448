/** The user of a row as a parameter: absent for the unnamed user. */
export function userParam({ userId }: { readonly userId?: string | undefined }): { userId?: string } {
  return userId === undefined ? {} : { userId };
}
