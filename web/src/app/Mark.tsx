/** The moot logo: people around a table. */
export function Mark({ size = 24 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" className="shrink-0">
      <rect width="32" height="32" rx="9" fill="var(--accent)" />
      <circle cx="16" cy="16" r="4.2" fill="none" stroke="var(--accent-ink)" strokeWidth="2.2" />
      {[0, 60, 120, 180, 240, 300].map((turn) => (
        <circle key={turn} cx="16" cy="6.4" r="2" fill="var(--accent-ink)" transform={`rotate(${turn} 16 16)`} />
      ))}
    </svg>
  )
}
