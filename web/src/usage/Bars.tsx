import { useEffect, useRef, useState } from 'react'
import { text } from '@/text'
import { steps } from '@/usage/chart'

export interface Bar {
  label: string
  /** The axis label. Defaults to `label`. */
  tick?: string
  value: number
  /** The formatted value, also for screen readers. */
  formatted: string
}

const [HEIGHT, LEFT, BOTTOM] = [220, 56, 26]

/** A bar chart with a text alternative. The table below it has the same numbers. */
export function Bars({ label, bars, tick }: { label: string; bars: readonly Bar[]; tick: (value: number) => string }) {
  const [at, setAt] = useState(-1)
  const figure = useRef<HTMLElement>(null)
  const full = useWidth(figure)
  const axis = steps(Math.max(...bars.map((bar) => bar.value), 0))
  const top = axis.at(-1) ?? 1
  const slot = (full - LEFT) / Math.max(bars.length, 1)
  const width = Math.min(slot * 0.72, 44)
  const y = (value: number) => 10 + (HEIGHT - BOTTOM - 10) * (1 - value / top)
  const every = Math.ceil(bars.length / Math.max(1, Math.floor((full - LEFT) / 64)))
  const shown = bars[at]
  return (
    <figure ref={figure}>
      <svg
        viewBox={`0 0 ${full} ${HEIGHT}`}
        role="img"
        aria-label={text.common.labeled(label, text.common.list(bars.map((bar) => `${bar.label} ${bar.formatted}`)))}
        className="h-auto w-full"
        onMouseLeave={() => setAt(-1)}
      >
        {axis.map((value) => (
          <g key={value}>
            <line x1={LEFT} x2={full} y1={y(value)} y2={y(value)} stroke="var(--line)" />
            <text x={LEFT - 8} y={y(value) + 4} textAnchor="end" fontSize="11" fill="var(--muted)">
              {tick(value)}
            </text>
          </g>
        ))}
        {bars.map((bar, index) => {
          const x = LEFT + slot * index + (slot - width) / 2
          const high = Math.max(bar.value > 0 ? 2 : 0, y(0) - y(bar.value))
          return (
            // biome-ignore lint/a11y/noStaticElementInteractions: hovering shows a number that is also in the table
            <g key={bar.label} onMouseEnter={() => setAt(index)}>
              <rect x={LEFT + slot * index} y="0" width={slot} height={HEIGHT - BOTTOM} fill="transparent" />
              <rect
                x={x}
                y={y(0) - high}
                width={width}
                height={high}
                rx={Math.min(4, width / 3)}
                fill={index === at ? 'var(--accent-strong)' : 'var(--accent)'}
              />
              {index % every === 0 && (
                <text x={x + width / 2} y={HEIGHT - 8} textAnchor="middle" fontSize="11" fill="var(--muted)">
                  {bar.tick ?? bar.label}
                </text>
              )}
            </g>
          )
        })}
      </svg>
      <figcaption className="h-5 text-center text-xs text-muted">
        {shown && `${shown.label}: ${shown.formatted}`}
      </figcaption>
    </figure>
  )
}

/** Return the current width of an element in px, so that chart labels keep their font size. */
function useWidth(ref: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(720)
  useEffect(() => {
    if (!ref.current) return
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.max(240, entry.contentRect.width)))
    observer.observe(ref.current)
    return () => observer.disconnect()
  }, [ref])
  return width
}
