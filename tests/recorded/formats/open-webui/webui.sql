BEGIN TRANSACTION;
CREATE TABLE chat (
	id VARCHAR NOT NULL, 
	user_id VARCHAR, 
	title TEXT, 
	created_at BIGINT, 
	updated_at BIGINT, 
	share_id TEXT, 
	archived BOOLEAN, chat JSON, pinned BOOLEAN, meta JSON DEFAULT '{}' NOT NULL, folder_id TEXT, tasks JSON, summary TEXT, last_read_at BIGINT, current_message_id TEXT, variables JSON, timer_at BIGINT, 
	PRIMARY KEY (id), 
	UNIQUE (share_id)
);
INSERT INTO "chat" VALUES('c1','p1','Lists',1795356718,1795356719,NULL,0,'{"title":"Lists","models":["llama3"],"history":{"messages":{"u1":{"id":"u1","parentId":null,"childrenIds":["a1","a2"],"role":"user","content":"What is here?","timestamp":1700000001,"models":["llama3"]},"a1":{"id":"a1","parentId":"u1","childrenIds":["u2"],"role":"assistant","content":"One file.","model":"llama3","modelName":"llama3","modelIdx":0,"timestamp":1700000002,"done":true,"output":[{"type":"reasoning","id":"r_1","status":"completed","start_tag":"<think>","end_tag":"</think>","attributes":{"type":"reasoning_content"},"content":[{"type":"output_text","text":"I look."}],"summary":null,"started_at":1700000002.0,"ended_at":1700000003.0,"duration":1},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"ls","arguments":"{\"path\": \".\"}","status":"completed"},{"type":"function_call_output","id":"fco_1","call_id":"call_1","output":[{"type":"input_text","text":"a.txt"}],"status":"completed"},{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"One file."}]}],"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25,"prompt_tokens_details":{"cached_tokens":4}}},"a2":{"id":"a2","parentId":"u1","childrenIds":[],"role":"assistant","content":"A file.","model":"llama3","timestamp":1700000003,"done":true,"output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"A file."}]}],"usage":{"input_tokens":20,"output_tokens":3}},"u2":{"id":"u2","parentId":"a1","childrenIds":["a3"],"role":"user","content":"And now?","timestamp":1700000101,"models":["llama3"]},"a3":{"id":"a3","parentId":"u2","childrenIds":[],"role":"assistant","content":"Nothing more.","model":"llama3","timestamp":1700000102,"done":true}},"currentId":"a3"},"timestamp":1700000001000}',0,'{}',NULL,'null',NULL,1795356718,'a3','{}',NULL);
CREATE TABLE chat_message (
	id TEXT NOT NULL, 
	chat_id TEXT NOT NULL, 
	user_id TEXT, 
	role TEXT NOT NULL, 
	parent_id TEXT, 
	content JSON, 
	output JSON, 
	model_id TEXT, 
	files JSON, 
	sources JSON, 
	embeds JSON, 
	done BOOLEAN, 
	status_history JSON, 
	error JSON, 
	usage JSON, 
	created_at BIGINT, 
	updated_at BIGINT, context_summary TEXT, meta JSON, 
	PRIMARY KEY (id), 
	FOREIGN KEY(chat_id) REFERENCES chat (id) ON DELETE CASCADE
);
INSERT INTO "chat_message" VALUES('c1-u1','c1','p1','user',NULL,'"What is here?"','null',NULL,'null','null','null',1,'null','null','null',1700000001,1795356718,NULL,'null');
INSERT INTO "chat_message" VALUES('c1-a1','c1','p1','assistant','u1','"One file."','[{"type":"reasoning","id":"r_1","status":"completed","start_tag":"<think>","end_tag":"</think>","attributes":{"type":"reasoning_content"},"content":[{"type":"output_text","text":"I look."}],"summary":null,"started_at":1700000002.0,"ended_at":1700000003.0,"duration":1},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"ls","arguments":"{\"path\": \".\"}","status":"completed"},{"type":"function_call_output","id":"fco_1","call_id":"call_1","output":[{"type":"input_text","text":"a.txt"}],"status":"completed"},{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"One file."}]}]','llama3','null','null','null',1,'null','null','{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25,"prompt_tokens_details":{"cached_tokens":4},"input_tokens":20,"output_tokens":5}',1700000002,1795356719,NULL,'null');
INSERT INTO "chat_message" VALUES('c1-a2','c1','p1','assistant','u1','"A file."','[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"A file."}]}]','llama3','null','null','null',1,'null','null','{"input_tokens":20,"output_tokens":3,"total_tokens":23}',1700000003,1795356719,NULL,'null');
INSERT INTO "chat_message" VALUES('c1-u2','c1','p1','user','a1','"And now?"','null',NULL,'null','null','null',1,'null','null','null',1700000101,1795356719,NULL,'null');
INSERT INTO "chat_message" VALUES('c1-a3','c1','p1','assistant','u2','"Nothing more."','null','llama3','null','null','null',1,'null','null','null',1700000102,1795356719,NULL,'null');
COMMIT;
