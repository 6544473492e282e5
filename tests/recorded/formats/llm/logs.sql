CREATE TABLE "attachments" (
   "id" TEXT PRIMARY KEY,
   "type" TEXT,
   "path" TEXT,
   "url" TEXT,
   "content" BLOB
);
INSERT INTO "attachments" VALUES('4c4b6a3be1314ab86138bef4314dde022e600960d8689a2c8f8631802d20dab6','image/png',NULL,NULL,X'89504E470D0A1A0A');
CREATE TABLE "conversations" (
   "id" TEXT PRIMARY KEY,
   "name" TEXT,
   "model" TEXT
);
CREATE TABLE "fragments" (
   "id" INTEGER PRIMARY KEY,
   "hash" TEXT,
   "content" TEXT,
   "datetime_utc" TEXT,
   "source" TEXT
);
CREATE TABLE "messages" (
   "hash" TEXT PRIMARY KEY,
   "parent_hash" TEXT REFERENCES "messages"("hash"),
   "role" TEXT,
   "provider_metadata" TEXT
);
INSERT INTO "messages" VALUES('b2:32cb3af67079be8aeafd8b05763f32c1',NULL,'system',NULL);
INSERT INTO "messages" VALUES('b2:706ec625402b042727650eb23570ec49','b2:32cb3af67079be8aeafd8b05763f32c1','user',NULL);
INSERT INTO "messages" VALUES('b2:c6f3a4a1a3ecbc497eeb9d6795a79ab4','b2:706ec625402b042727650eb23570ec49','assistant',NULL);
INSERT INTO "messages" VALUES('b2:e69c76d029d37db6c03a7f874ab28d3a','b2:c6f3a4a1a3ecbc497eeb9d6795a79ab4','user',NULL);
INSERT INTO "messages" VALUES('b2:1511697af07c5f3ec6dc7b422ea67f90','b2:e69c76d029d37db6c03a7f874ab28d3a','assistant',NULL);
INSERT INTO "messages" VALUES('b2:b26edf1e81069f693b70370488396a82',NULL,'user',NULL);
INSERT INTO "messages" VALUES('b2:b65d5e270cd9abcfcb9119fc89e41886','b2:b26edf1e81069f693b70370488396a82','assistant',NULL);
INSERT INTO "messages" VALUES('b2:53553508c0a6e4dffa4530e23960bbb0','b2:b65d5e270cd9abcfcb9119fc89e41886','tool',NULL);
INSERT INTO "messages" VALUES('b2:af75c4fd3b304f51d5e3201d8e3d6f19','b2:53553508c0a6e4dffa4530e23960bbb0','assistant',NULL);
CREATE TABLE "part_attachments" (
   "part_id" INTEGER REFERENCES "parts"("id"),
   "attachment_id" TEXT REFERENCES "attachments"("id"),
   "order" INTEGER,
   PRIMARY KEY ("part_id", "attachment_id", "order")
);
INSERT INTO "part_attachments" VALUES(5,'4c4b6a3be1314ab86138bef4314dde022e600960d8689a2c8f8631802d20dab6',0);
CREATE TABLE "part_fragments" (
   "part_id" INTEGER REFERENCES "parts"("id"),
   "fragment_id" INTEGER REFERENCES "fragments"("id"),
   "order" INTEGER,
   PRIMARY KEY ("part_id", "fragment_id", "order")
);
CREATE TABLE "parts" (
   "id" INTEGER PRIMARY KEY,
   "message_hash" TEXT REFERENCES "messages"("hash"),
   "position" INTEGER,
   "type" TEXT,
   "tool_name" TEXT,
   "text" TEXT,
   "payload" TEXT
);
INSERT INTO "parts" VALUES(1,'b2:32cb3af67079be8aeafd8b05763f32c1',0,'text',NULL,'be brief',NULL);
INSERT INTO "parts" VALUES(2,'b2:706ec625402b042727650eb23570ec49',0,'text',NULL,'first',NULL);
INSERT INTO "parts" VALUES(3,'b2:c6f3a4a1a3ecbc497eeb9d6795a79ab4',0,'text',NULL,'answer 1',NULL);
INSERT INTO "parts" VALUES(4,'b2:e69c76d029d37db6c03a7f874ab28d3a',0,'text',NULL,'second',NULL);
INSERT INTO "parts" VALUES(5,'b2:e69c76d029d37db6c03a7f874ab28d3a',1,'attachment',NULL,NULL,'{"attachment": {"id": "4c4b6a3be1314ab86138bef4314dde022e600960d8689a2c8f8631802d20dab6"}}');
INSERT INTO "parts" VALUES(6,'b2:1511697af07c5f3ec6dc7b422ea67f90',0,'text',NULL,'answer 2',NULL);
INSERT INTO "parts" VALUES(7,'b2:b26edf1e81069f693b70370488396a82',0,'text',NULL,'use it',NULL);
INSERT INTO "parts" VALUES(8,'b2:b65d5e270cd9abcfcb9119fc89e41886',0,'text',NULL,'calling',NULL);
INSERT INTO "parts" VALUES(9,'b2:b65d5e270cd9abcfcb9119fc89e41886',1,'tool_call','upper',NULL,'{"name": "upper", "arguments": {"text": "hi"}, "tool_call_id": "c3"}');
INSERT INTO "parts" VALUES(10,'b2:53553508c0a6e4dffa4530e23960bbb0',0,'tool_result','upper',NULL,'{"name": "upper", "output": "HI", "tool_call_id": "c3"}');
INSERT INTO "parts" VALUES(11,'b2:af75c4fd3b304f51d5e3201d8e3d6f19',0,'text',NULL,'answer 4',NULL);
CREATE TABLE "responses" (
   "id" TEXT PRIMARY KEY,
   "model" TEXT,
   "prompt" TEXT,
   "system" TEXT,
   "prompt_json" TEXT,
   "options_json" TEXT,
   "response" TEXT,
   "response_json" TEXT,
   "conversation_id" TEXT REFERENCES "conversations"("id"),
   "duration_ms" INTEGER,
   "datetime_utc" TEXT,
   "input_tokens" INTEGER,
   "output_tokens" INTEGER,
   "token_details" TEXT,
   "schema_id" TEXT REFERENCES "schemas"("id")
, "resolved_model" TEXT, "reasoning" TEXT);
CREATE TABLE "threads" (
   "id" TEXT PRIMARY KEY,
   "name" TEXT,
   "tip_message_hash" TEXT REFERENCES "messages"("hash"),
   "forked_from" TEXT REFERENCES "threads"("id"),
   "datetime_utc" TEXT
);
INSERT INTO "threads" VALUES('01m81jakf27bnv43h2d3n3zc2m','first','b2:1511697af07c5f3ec6dc7b422ea67f90',NULL,'2026-11-22 12:05:06.186344+00:00');
INSERT INTO "threads" VALUES('01m81jakhg9rfd2dgb531avkza','use it','b2:af75c4fd3b304f51d5e3201d8e3d6f19',NULL,'2026-11-22 12:05:06.233901+00:00');
CREATE TABLE "turns" (
   "id" TEXT PRIMARY KEY,
   "thread_id" TEXT REFERENCES "threads"("id"),
   "parent_message_hash" TEXT REFERENCES "messages"("hash"),
   "tip_message_hash" TEXT REFERENCES "messages"("hash"),
   "model" TEXT,
   "resolved_model" TEXT,
   "options_json" TEXT,
   "schema_id" TEXT REFERENCES "schemas"("id"),
   "input_tokens" INTEGER,
   "output_tokens" INTEGER,
   "token_details" TEXT,
   "duration_ms" INTEGER,
   "datetime_utc" TEXT
, "response_json" TEXT);
INSERT INTO "turns" VALUES('01m81jakf27bnv43h2d3n3zc2n','01m81jakf27bnv43h2d3n3zc2m','b2:706ec625402b042727650eb23570ec49','b2:c6f3a4a1a3ecbc497eeb9d6795a79ab4','mock',NULL,NULL,NULL,10,5,NULL,0,'2026-11-22T12:05:06.146610+00:00',NULL);
INSERT INTO "turns" VALUES('01m81jakh2fptw83dd3t2xftsx','01m81jakf27bnv43h2d3n3zc2m','b2:e69c76d029d37db6c03a7f874ab28d3a','b2:1511697af07c5f3ec6dc7b422ea67f90','mock',NULL,NULL,NULL,20,5,NULL,0,'2026-11-22T12:05:06.210541+00:00',NULL);
INSERT INTO "turns" VALUES('01m81jakhskmcv2rear1awv3e9','01m81jakhg9rfd2dgb531avkza','b2:b26edf1e81069f693b70370488396a82','b2:b65d5e270cd9abcfcb9119fc89e41886','mock',NULL,NULL,NULL,30,5,NULL,0,'2026-11-22T12:05:06.233477+00:00',NULL);
INSERT INTO "turns" VALUES('01m81jakjc07bxtr9vtfpvh3h3','01m81jakhg9rfd2dgb531avkza','b2:53553508c0a6e4dffa4530e23960bbb0','b2:af75c4fd3b304f51d5e3201d8e3d6f19','mock',NULL,NULL,NULL,40,5,NULL,0,'2026-11-22T12:05:06.252167+00:00',NULL);
