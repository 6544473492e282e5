import {
  Bot,
  Brain,
  CalendarClock,
  FolderCog,
  FolderInput,
  FolderTree,
  GraduationCap,
  Info,
  KeyRound,
  Link2,
  ListTodo,
  type LucideIcon,
  Palette,
  Plug,
  ShieldCheck,
  SquareSlash,
  Wrench,
} from 'lucide-react'
import { type ReactNode, useEffect, useRef } from 'react'
import { Link, useLocation } from 'wouter'
import { text } from '@/text'
import { View } from '@/ui/View'

const PLACES: readonly [path: string, label: string, icon: LucideIcon][] = [
  ['/settings', text.settings.configuration, FolderCog],
  ['/settings/models', text.settings.models, Plug],
  ['/settings/agents', text.settings.agents, Bot],
  ['/settings/projects', text.settings.projects, FolderTree],
  ['/settings/tasks', text.settings.tasks, ListTodo],
  ['/settings/tools', text.settings.tools, Wrench],
  ['/settings/permissions', text.settings.permissions, ShieldCheck],
  ['/settings/commands', text.settings.commands, SquareSlash],
  ['/settings/skills', text.settings.skills, GraduationCap],
  ['/settings/memory', text.settings.memory, Brain],
  ['/settings/tokens', text.settings.tokens, KeyRound],
  ['/settings/cron', text.settings.cron, CalendarClock],
  ['/settings/shares', text.settings.shares, Link2],
  ['/settings/import', text.settings.import, FolderInput],
  ['/settings/appearance', text.settings.appearance, Palette],
  ['/settings/about', text.settings.about, Info],
]

interface Props {
  title: string
  about?: ReactNode
  actions?: ReactNode
  children: ReactNode
}

/** A settings view with navigation at the side, or at the top on narrow screens. */
export function Area({ children, ...view }: Props) {
  const [location] = useLocation()
  const places = useRef<HTMLElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: scroll the current entry into view after navigation
  useEffect(() => {
    places.current?.querySelector('[aria-current=page]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [location])
  return (
    <View
      {...view}
      navigation={
        <nav
          ref={places}
          aria-label={text.settings.label}
          className="flex gap-1 overflow-x-auto border-line max-xl:border-b max-xl:bg-canvas max-xl:px-2 max-xl:py-1.5 xl:sticky xl:top-9 xl:w-44 xl:shrink-0 xl:flex-col xl:self-start"
        >
          {PLACES.map(([path, label, Icon]) => (
            <Link
              key={path}
              href={path}
              aria-current={location === path ? 'page' : undefined}
              className="flex min-h-9 shrink-0 items-center gap-2.5 rounded-lg px-3 text-sm text-muted hover:bg-hover hover:text-ink aria-[current=page]:bg-accent-soft aria-[current=page]:font-medium aria-[current=page]:text-ink max-md:min-h-11"
            >
              <Icon size={16} aria-hidden />
              {label}
            </Link>
          ))}
        </nav>
      }
    >
      {children}
    </View>
  )
}
