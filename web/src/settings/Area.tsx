import {
  Bot,
  ChartNoAxesColumn,
  FolderCog,
  FolderInput,
  FolderTree,
  Info,
  KeyRound,
  Link2,
  type LucideIcon,
  Plug,
  ShieldCheck,
  Wrench,
} from 'lucide-react'
import { type ReactNode, useEffect, useRef } from 'react'
import { Link, useLocation } from 'wouter'
import { View } from '@/ui/View'

const PLACES: readonly [path: string, words: string, icon: LucideIcon][] = [
  ['/settings', 'Configuration', FolderCog],
  ['/settings/models', 'Models', Plug],
  ['/settings/agents', 'Agents', Bot],
  ['/settings/projects', 'Projects', FolderTree],
  ['/settings/tools', 'Tools', Wrench],
  ['/settings/permissions', 'Permissions', ShieldCheck],
  ['/settings/tokens', 'Tokens', KeyRound],
  ['/settings/shares', 'Shared pages', Link2],
  ['/settings/import', 'Import', FolderInput],
  ['/settings/usage', 'Usage', ChartNoAxesColumn],
  ['/settings/about', 'About', Info],
]

interface Props {
  title: string
  about?: ReactNode
  actions?: ReactNode
  children: ReactNode
}

/** A view of the settings, with the way to the others beside it, or above it on a narrow screen. */
export function Area({ children, ...view }: Props) {
  const [location] = useLocation()
  const places = useRef<HTMLElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another place has to be brought into view where they stand in a row
  useEffect(() => {
    places.current?.querySelector('[aria-current=page]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [location])
  return (
    <View
      {...view}
      beside={
        <nav
          ref={places}
          aria-label="Settings"
          className="flex gap-1 overflow-x-auto border-line max-lg:border-b max-lg:bg-canvas max-lg:px-2 max-lg:py-1.5 lg:sticky lg:top-9 lg:w-44 lg:shrink-0 lg:flex-col lg:self-start"
        >
          {PLACES.map(([path, words, Icon]) => (
            <Link
              key={path}
              href={path}
              aria-current={location === path ? 'page' : undefined}
              className="flex min-h-9 shrink-0 items-center gap-2.5 rounded-lg px-3 text-sm text-muted hover:bg-hover hover:text-ink aria-[current=page]:bg-accent-soft aria-[current=page]:font-medium aria-[current=page]:text-ink max-md:min-h-11"
            >
              <Icon size={16} aria-hidden />
              {words}
            </Link>
          ))}
        </nav>
      }
    >
      {children}
    </View>
  )
}
