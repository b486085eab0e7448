import { useState } from "react";
import { errorText } from "../connect/gateway.tsx";
import buttons from "../ui/button.module.css";

interface RevokeButtonProps {
  readonly name: string;
  readonly revoke: () => Promise<unknown>;
  readonly onRevoked: () => void;
}

/** Asks for confirmation in place, because a revoked token cannot be restored. */
export function RevokeButton({ name, revoke, onRevoked }: RevokeButtonProps) {
  const [phase, setPhase] = useState<"idle" | "asking" | "busy">("idle");
  const [error, setError] = useState<string | null>(null);
  const confirm = async () => {
    setPhase("busy");
    try {
      await revoke();
      onRevoked();
    } catch (failure) {
      setError(errorText(failure));
    }
    setPhase("idle");
  };
  if (phase === "idle") {
    return (
      <>
        {error !== null && <span role="alert">{error} </span>}
        <button type="button" className={buttons.button} data-takes-focus onClick={() => setPhase("asking")}>
          {name}
        </button>
      </>
    );
  }
  return (
    <span
      onKeyDown={({ key }) => {
        if (key === "Escape") setPhase("idle");
      }}
    >
      <button
        type="button"
        autoFocus
        className={buttons.button}
        data-look="danger"
        disabled={phase === "busy"}
        onClick={() => void confirm()}
      >
        Revoke permanently
      </button>{" "}
      <button
        type="button"
        className={buttons.button}
        data-look="quiet"
        disabled={phase === "busy"}
        onClick={() => setPhase("idle")}
      >
        Cancel
      </button>
    </span>
  );
}
